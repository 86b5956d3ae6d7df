-- Grain: one row per project, with the time of its first load. A time in the future was stored with a wrong clock.
SELECT min(first_loaded_at) AS began_at
FROM days
WHERE project IN (SELECT unnest(from_json($projects, '["VARCHAR"]'))) AND first_loaded_at <= $now
GROUP BY project
