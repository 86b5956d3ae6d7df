-- Grain: one row per day and path of a month of a project.
SELECT day, path, page, human, ai, total
FROM page_views
WHERE project = $project AND day BETWEEN $first::DATE AND last_day($first::DATE)
ORDER BY day, path
