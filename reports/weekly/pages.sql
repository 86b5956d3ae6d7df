-- Grain: one row with the counts of pages, inAYear in 52 weeks, and the five most read new ones. new
-- is NULL if it cannot be told whether a page is new, because too few days before it are loaded.
SELECT
  count(*) AS read,
  (
    SELECT count(DISTINCT page)
    FROM page_views
    WHERE project = $project AND day BETWEEN $to::DATE - 363 AND $to::DATE AND human + ai > 0
  ) AS inAYear,
  if(bool_or(is_new IS NULL), NULL, count(*) FILTER (is_new)) AS new,
  coalesce(
    list({path: path, human: human, ai: ai} ORDER BY human + ai DESC, path) FILTER (is_new),
    []
  )[:5] AS newPages
FROM changes($from, $to)
WHERE project = $project AND human + ai > 0
