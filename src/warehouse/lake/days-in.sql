-- Grain: one row per project and day in Parquet files of the lake, with the columns of `lake_days`. A load time is not
-- hashed, so its type does not matter.
CREATE OR REPLACE TEMP MACRO lake_days_in(files) AS TABLE
SELECT
  project::VARCHAR AS project,
  day::DATE AS day,
  state::VARCHAR AS state,
  loaded_at,
  human::BIGINT AS human,
  ai::BIGINT AS ai,
  total::BIGINT AS total,
  pages::BIGINT AS pages
FROM read_parquet(files, hive_partitioning = false)
