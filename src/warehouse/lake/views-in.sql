-- Grain: one row per project, day and path in Parquet files of the lake, with the columns of `lake_views`.
CREATE OR REPLACE TEMP MACRO lake_views_in(files) AS TABLE
SELECT
  project::VARCHAR AS project,
  day::DATE AS day,
  path::VARCHAR AS path,
  human::BIGINT AS human,
  ai::BIGINT AS ai,
  total::BIGINT AS total
FROM read_parquet(files, hive_partitioning = false)
