-- Grain: one row per week with a loaded day, of the thirteen that end with the reported one. Oldest first.
SELECT week, iso_week, human, ai, ai_share, days_loaded
FROM site_weeks
WHERE project = $project AND week BETWEEN $from::DATE - 84 AND $to::DATE
ORDER BY week
