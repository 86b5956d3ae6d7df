INSERT INTO page_views BY NAME
SELECT project, day, path, human, ai, total
FROM read_parquet(getvariable('lake_files'), hive_partitioning = false)
SEMI JOIN lake_projects USING (project)
ORDER BY day, project, path
