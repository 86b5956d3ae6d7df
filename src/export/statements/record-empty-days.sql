-- Days of a range whose totals are zero, and that are not stored.
INSERT INTO day_loads BY NAME
SELECT
  $project AS project,
  calendar.day::DATE AS day,
  'final' AS state,
  $now::TIMESTAMP AS attempted_at,
  $now::TIMESTAMP AS loaded_at,
  0 AS human,
  0 AS ai,
  0 AS total,
  0 AS pages,
  0 AS unattributed_human,
  0 AS unattributed_ai,
  0 AS unattributed_total,
  0 AS failures
FROM generate_series($first::DATE, $last::DATE, INTERVAL 1 DAY) AS calendar (day)
WHERE
  NOT EXISTS (FROM day_loads WHERE project = $project AND day = calendar.day::DATE)
