-- Grain: one row per page read of the day.
SELECT page_offset, response FROM unfinished_pages WHERE project = $project AND day = $day::DATE
