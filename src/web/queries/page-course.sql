-- Grain: one row per week with a loaded day, latest first, with the views of a page in it.
SELECT week, coalesce(page.human, 0) AS human, coalesce(page.ai, 0) AS ai, days_loaded
FROM site_weeks AS site LEFT JOIN (FROM page_weeks WHERE path = $path) AS page USING (project, week)
WHERE project = $project AND week >= (SELECT min(week) FROM page_weeks WHERE project = $project AND path = $path)
ORDER BY week DESC
LIMIT $weeks
