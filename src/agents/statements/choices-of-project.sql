-- Grain: one row per page considered in the project's latest selection.
SELECT path, is_flagged, code, facts, weekly_human, weekly_ai FROM page_choices WHERE project = $project ORDER BY path
