-- Grain: one row per project and day whose last attempt failed.
SELECT project, day, attempted_at, coalesce(failure, 'unknown') AS failure, greatest(failures, 1) AS failures
FROM day_loads
WHERE state = 'failed'
ORDER BY project, day
