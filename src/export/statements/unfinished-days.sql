-- Grain: one row per day of which some pages are not read yet, with the number of rows that are.
SELECT day, sum(json_array_length(response, '$.views'))::INTEGER AS rows
FROM unfinished_pages
WHERE project = $project
GROUP BY day
