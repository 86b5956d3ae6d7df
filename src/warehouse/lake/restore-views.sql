INSERT INTO page_views BY NAME
SELECT project, day, path, human, ai, total
FROM read_parquet(getvariable('lake_files'))
ORDER BY day, project, path
