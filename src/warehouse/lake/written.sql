-- Grain: one row per Parquet file that matches $files, with the Delta action that adds it to the
-- table. Engines skip files by these statistics; Spark does so only if nulls are counted.
SELECT
  file_name AS file,
  {
    path: $name::VARCHAR || '-' || left(uuid()::VARCHAR, 8) || '.parquet',
    partitionValues: { month: $month::VARCHAR },
    size: any_value(file_size_bytes),
    stats: to_json(
      {
        numRecords: any_value(num_rows),
        minValues: map_from_entries(list((path_in_schema, low)) FILTER (low IS NOT NULL)),
        maxValues: map_from_entries(list((path_in_schema, high)) FILTER (high IS NOT NULL)),
        nullCount: map_from_entries(list((path_in_schema, nulls)))
      }
    )::VARCHAR,
    modificationTime: $time::BIGINT,
    dataChange: true
  } AS add
FROM
  (
    SELECT
      file_name,
      path_in_schema,
      -- DuckDB leaves out the bound of a row group that it cannot shorten. The others say nothing about its rows.
      if(count(stats_min_value) = count(*), min(stats_min_value), NULL) AS low,
      if(count(stats_max_value) = count(*), max(stats_max_value), NULL) AS high,
      sum(stats_null_count)::BIGINT AS nulls
    FROM parquet_metadata($files)
    WHERE path_in_schema IN ('project', 'day', 'path')
    GROUP BY ALL
  )
INNER JOIN parquet_file_metadata($files) USING (file_name)
GROUP BY file_name
