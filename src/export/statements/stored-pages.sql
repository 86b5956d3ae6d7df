-- Grain: one row per page stored for the day.
SELECT path, human, ai, total FROM page_views WHERE project = $project AND day = $day::DATE
