-- Sorting by page within a quarter keeps both queries for one page and for one week of all pages fast. Sorting
-- by the place of a path is faster than by the page and path themselves.
INSERT INTO next.page_views
SELECT page_views.*
FROM main.page_views
JOIN (
  SELECT path, row_number() OVER (ORDER BY page, path) AS place
  FROM (
    SELECT DISTINCT path, page
    FROM main.page_views
    WHERE project = $project AND day BETWEEN $first::DATE AND $last::DATE
  )
) USING (path)
WHERE project = $project AND day BETWEEN $first::DATE AND $last::DATE
ORDER BY date_trunc('quarter', day), place, day
