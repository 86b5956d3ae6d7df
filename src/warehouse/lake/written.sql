-- Grain: one row per Parquet file that matches $files, with the Delta action that adds it to the table. Engines skip
-- files by these statistics; Spark does so only if nulls are counted. The bounds are those of the rows, for every
-- column: DuckDB leaves some out of a file, and pyarrow, reading through delta-rs, finds no row by a column without.
WITH
  stored AS (SELECT {columns} FROM read_parquet($files, filename = true, hive_partitioning = false)),
  low AS (SELECT filename, min(COLUMNS(* EXCLUDE (filename))) AS "\0" FROM stored GROUP BY filename),
  high AS (SELECT filename, max(COLUMNS(* EXCLUDE (filename))) AS "\0" FROM stored GROUP BY filename),
  nulls AS (SELECT filename, count(*) - count(COLUMNS(* EXCLUDE (filename))) AS "\0" FROM stored GROUP BY filename),
  -- As JSON, without columns that are all null.
  bound AS (
    SELECT
      filename,
      json_merge_patch('{}', to_json(low), '{"filename": null}') AS low,
      json_merge_patch('{}', to_json(high), '{"filename": null}') AS high,
      json_merge_patch('{}', to_json(nulls), '{"filename": null}') AS nulls
    FROM low JOIN high USING (filename) JOIN nulls USING (filename)
  )

SELECT
  file_name AS file,
  {
    path: $name::VARCHAR || '-' || left(uuid()::VARCHAR, 8) || '.parquet',
    partitionValues: { month: $month::VARCHAR },
    size: file_size_bytes,
    stats: to_json({ numRecords: num_rows, minValues: low, maxValues: high, nullCount: nulls })::VARCHAR,
    modificationTime: $time::BIGINT,
    dataChange: true
  } AS add
FROM bound JOIN parquet_file_metadata($files) ON file_name = filename
