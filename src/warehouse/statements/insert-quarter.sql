-- Sorting by page within a quarter keeps both queries for one page and for one week of all pages fast.
INSERT INTO publication.page_views
FROM main.page_views
WHERE project = $project AND day >= $quarter::DATE AND day < $quarter::DATE + INTERVAL 3 MONTH
ORDER BY path, day
