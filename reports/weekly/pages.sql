-- Grain: one row with the counts of pages and the five most read new ones. new is NULL if it cannot
-- be told whether a page is new, because too few days before it are loaded.
SELECT
  count(*) AS read,
  (
    SELECT count(DISTINCT path)
    FROM page_views
    WHERE project = $project AND day <= $to::DATE AND human + ai > 0
  ) AS ever_seen,
  if(bool_or(is_new IS NULL), NULL, count(*) FILTER (is_new)) AS new,
  coalesce(
    list({path: path, human: human, ai: ai} ORDER BY human + ai DESC, path) FILTER (is_new),
    []
  )[:5] AS new_pages
FROM changes($from, $to)
WHERE project = $project AND human + ai > 0
