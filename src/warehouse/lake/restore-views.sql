INSERT INTO page_views BY NAME
SELECT project, day, path, human, ai, total
FROM read_parquet(getvariable('lake_files'), hive_partitioning = false)
WHERE project IS NOT NULL AND is_in_shard(project)
ORDER BY day, project, path
