-- Grain: one row per day ever requested, oldest first; only `day` if it is given.
SELECT
  day,
  state,
  loaded_at IS NOT NULL AS is_stored,
  attempted_at,
  coalesce(human, 0) AS human,
  coalesce(ai, 0) AS ai,
  coalesce(total, 0) AS total,
  pages,
  failures,
  failure
FROM day_loads
WHERE
  project = $project
  AND ($day::DATE IS NULL OR day = $day::DATE)
ORDER BY day
