-- Grain: one row per stored day of a project, which tells a day without views from a missing one.
SELECT day, state, loaded_at AT TIME ZONE 'UTC' AS loaded_at, human, ai, total, pages
FROM day_loads
WHERE project = $project AND loaded_at IS NOT NULL
ORDER BY day
