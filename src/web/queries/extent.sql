-- Grain: one row, the first and the last loaded day of a project.
SELECT min(day) AS first, max(day) AS last
FROM site_days
WHERE project = $project
