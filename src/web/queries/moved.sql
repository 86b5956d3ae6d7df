-- Grain: one row per audience and page that moved in the seven days from the given Monday.
SELECT
  audience,
  path,
  views,
  round(expected)::BIGINT AS expected,
  views > expected AS is_rise
FROM movers($week::DATE)
WHERE project = $project
LIMIT 8
