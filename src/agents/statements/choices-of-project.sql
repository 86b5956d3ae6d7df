-- Grain: one row per page of the project's latest choice.
SELECT path, is_flagged, why, weekly_human, weekly_ai FROM page_choices WHERE project = $project ORDER BY path
