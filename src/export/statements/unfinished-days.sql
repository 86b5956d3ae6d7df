-- Grain: one row per day whose last rows are not read yet, with the number of those that are.
SELECT day, json_array_length(response, '$.views') AS rows
FROM unfinished_pages
WHERE project = $project AND page_offset = 0
