-- Grain: one row if the day was ever requested, otherwise none.
SELECT
  loaded_at IS NOT NULL AS is_stored,
  coalesce(human, 0) AS human,
  coalesce(ai, 0) AS ai,
  coalesce(total, 0) AS total,
  state,
  attempted_at,
  failures
FROM day_loads
WHERE project = $project AND day = $day::DATE
