-- Grain: one row if the first rows of the day are kept, otherwise none.
SELECT response FROM unfinished_pages WHERE project = $project AND day = $day::DATE AND page_offset = 0
