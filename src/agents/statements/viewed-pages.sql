-- Grain: one row per page of $paths that was viewed in one of $weeks. Weeks without views count as 0.
WITH
  -- A filter on days lets DuckDB skip parts of the file; one on weeks would not.
  days AS (
    SELECT week, week + weekday::INTEGER AS day
    FROM (SELECT unnest(from_json($weeks, '["DATE"]')) AS week) CROSS JOIN range(7) AS of_week (weekday)
  )
SELECT
  path,
  list_median(list_resize(list(human), json_array_length($weeks)::INTEGER, 0)) AS weekly_human,
  list_median(list_resize(list(ai), json_array_length($weeks)::INTEGER, 0)) AS weekly_ai
FROM
  (
    SELECT path, week, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai
    FROM page_views JOIN days USING (day)
    WHERE project = $project AND path IN (SELECT unnest(from_json($paths, '["VARCHAR"]')))
    GROUP BY path, week
  )
GROUP BY path
