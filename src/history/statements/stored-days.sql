-- Grain: one row per stored day of the project, oldest first.
SELECT * EXCLUDE (project)
FROM days
WHERE project = $project
ORDER BY day
