-- Grain: one row per page that the last run of improve left out, most viewed first.
SELECT path, code, chosen_at, weekly_human, weekly_ai
FROM page_choices
WHERE project = $project AND code NOT IN ('flagged', 'next')
ORDER BY weekly_human + weekly_ai DESC, path
