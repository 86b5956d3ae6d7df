-- Grain: one row per page that is kept of the day; that at 0 has all rows that were read in a row.
SELECT page_offset, response FROM unfinished_pages WHERE project = $project AND day = $day::DATE
