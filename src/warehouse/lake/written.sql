-- Grain: one row per Parquet file that matches $files, with its size and its statistics in the terms of the protocol.
SELECT
  file_name AS file,
  any_value(file_size_bytes) AS size,
  to_json(
    {
      numRecords: any_value(num_rows),
      minValues: map_from_entries(list((path_in_schema, low)) FILTER (low IS NOT NULL)),
      maxValues: map_from_entries(list((path_in_schema, high)) FILTER (high IS NOT NULL))
    }
  )::VARCHAR AS stats
FROM
  (
    SELECT file_name, path_in_schema, min(stats_min_value) AS low, max(stats_max_value) AS high
    FROM parquet_metadata($files)
    WHERE path_in_schema IN ('project', 'day', 'path')
    GROUP BY ALL
  )
INNER JOIN parquet_file_metadata($files) USING (file_name)
GROUP BY file_name
