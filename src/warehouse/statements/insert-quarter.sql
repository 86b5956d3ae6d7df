-- Sorting by page within a quarter keeps both queries for one page and for one week of all pages fast. Sorting
-- by the place of a path is faster than by the path itself.
INSERT INTO next.page_views
SELECT page_views.*
FROM main.page_views
JOIN (
  SELECT path, row_number() OVER (ORDER BY path) AS place
  FROM (
    SELECT DISTINCT path
    FROM main.page_views
    WHERE project = $project AND day >= $quarter::DATE AND day < $quarter::DATE + INTERVAL 3 MONTH
  )
) USING (path)
WHERE project = $project AND day >= $quarter::DATE AND day < $quarter::DATE + INTERVAL 3 MONTH
ORDER BY place, day
