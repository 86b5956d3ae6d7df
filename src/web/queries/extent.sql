-- Grain: one row with the first and last loaded day of a project; none if no day is loaded.
SELECT min(day) AS first, max(day) AS last
FROM site_days
WHERE project = $project
HAVING count(*) > 0
