-- Grain: one row per row of $rows that is not stored for the day as it is.
SELECT path
FROM
  (SELECT unnest(from_json($rows, '[{"path": "VARCHAR", "human": "BIGINT", "ai": "BIGINT", "total": "BIGINT"}]'), recursive := true))
  ANTI JOIN (FROM page_views WHERE project = $project AND day = $day::DATE) USING (path, human, ai, total)
