-- Grain: one row per project of which days were loaded since the report step last succeeded.
SELECT DISTINCT project
FROM day_loads
WHERE attempted_at >= coalesce((SELECT max(started_at) FROM runs WHERE step = 'report' AND outcome = 'done'), '-infinity')
