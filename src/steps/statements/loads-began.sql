-- Grain: one row per project, with the time of its first load. A time in the future was stored with a wrong clock.
SELECT min(attempted_at) AS began_at
FROM day_loads
WHERE project IN (SELECT unnest(from_json($projects, '["VARCHAR"]'))) AND attempted_at <= $now
GROUP BY project
