-- Grain: one row with the time at which the newest of some projects was first loaded, NULL if none is. A time in the
-- future was stored with a wrong clock.
SELECT max(began_at) AS began_at
FROM (
  SELECT min(first_loaded_at) AS began_at
  FROM days
  WHERE project IN (SELECT unnest(from_json($projects, '["VARCHAR"]'))) AND first_loaded_at <= $now
  GROUP BY project
)
