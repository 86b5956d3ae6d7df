-- The days of a page in a quarter lie together: asking for one page reads little, and so does asking for a week of all.
INSERT INTO publication.page_views
FROM main.page_views
WHERE project = $project AND day >= $quarter::DATE AND day < $quarter::DATE + INTERVAL 3 MONTH
ORDER BY path, day
