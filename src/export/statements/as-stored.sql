-- Grain: one row if the day is stored with these totals and $rows: all of its rows or, if $has_more, some of them.
SELECT day
FROM day_loads
WHERE
  project = $project
  AND day = $day::DATE
  AND (human, ai, total) = ($human::BIGINT, $ai::BIGINT, $total::BIGINT)
  AND (pages = json_array_length($rows) OR ($has_more AND json_array_length($rows) BETWEEN 1 AND pages))
  AND NOT EXISTS (
    FROM
      (SELECT unnest(from_json($rows, '[{"path": "VARCHAR", "human": "BIGINT", "ai": "BIGINT", "total": "BIGINT"}]'), recursive := true))
      ANTI JOIN (FROM page_views WHERE project = $project AND day = $day::DATE) USING (path, human, ai, total)
  )
