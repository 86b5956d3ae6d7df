-- Grain: one row per page, the twenty most viewed of the period.
SELECT page AS path, sum(human) AS human, sum(ai) AS ai
FROM page_views
WHERE project = $project AND day BETWEEN $from AND $to AND page GLOB $pages
GROUP BY page
ORDER BY sum(human + ai) DESC, page
LIMIT 20
