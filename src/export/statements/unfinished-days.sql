-- Grain: one row per day of which the last pages are still to be read.
SELECT day, count(*) AS pages FROM unfinished_pages WHERE project = $project GROUP BY day
