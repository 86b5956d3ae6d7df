-- Grain: one row per day whose last pages are not read yet.
SELECT day, count(*) AS pages FROM unfinished_pages WHERE project = $project GROUP BY day
