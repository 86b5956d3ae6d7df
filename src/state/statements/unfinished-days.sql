-- Grain: one row per day of which some pages are kept, with the number of rows on them.
SELECT day, sum(json_array_length(response, '$.views')) AS rows
FROM kept_pages
WHERE project = $project
GROUP BY day
