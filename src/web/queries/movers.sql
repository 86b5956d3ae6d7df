-- Grain: one row per audience and page of the project that moved in the week, largest change first.
SELECT
  audience,
  path,
  views,
  round(expected)::BIGINT AS expected,
  round(expected_low)::BIGINT AS expected_low,
  round(expected_high)::BIGINT AS expected_high,
  days_active
FROM movers($week)
WHERE project = $project
