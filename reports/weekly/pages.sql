-- Grain: one row about the pages that were read. read is how many, inAYear how many in 52 weeks; new is
-- NULL if it cannot be told whether a page is new, because too few days before it are loaded. newPages
-- are the five most read new ones. notPages are the views of all other addresses, with the three most viewed of them, and
-- those of files for AI. mostRead are those that are among the fifty most viewed by people, by AI
-- or by both, most viewed first; their views before are 0 without any, and NULL across a break, and for a
-- page that was first viewed in the middle of the week before.
WITH
  address AS MATERIALIZED (
    FROM changes($from, $to, project_id := $project)
    WHERE human + ai > 0
  ),

  viewed AS (FROM address WHERE is_page),

  other AS (SELECT path, human, ai, is_for_ai(path) AS is_for_ai FROM address WHERE NOT is_page),

  most_read AS (
    FROM viewed
    QUALIFY
      least(
        row_number() OVER (ORDER BY human DESC, path),
        row_number() OVER (ORDER BY ai DESC, path),
        row_number() OVER (ORDER BY human + ai DESC, path)
      ) <= 50
  ),

  known AS (
    SELECT page AS path, min(day) > $from - 7 AS is_young
    FROM page_views SEMI JOIN most_read ON most_read.path = page_views.page
    WHERE project = $project AND day BETWEEN $from - 28 AND $from - 1 AND human + ai > 0
    GROUP BY page
  ),

  compared AS (
    SELECT
      path,
      human,
      ai,
      is_young OR total_before > 0 AND total_change IS NULL AS is_incomparable,
      if(is_incomparable, NULL, coalesce(human_before, 0)) AS human_before,
      if(is_incomparable, NULL, coalesce(ai_before, 0)) AS ai_before,
      is_new
    FROM most_read LEFT JOIN known USING (path)
  )

SELECT
  count(*) AS read,
  (
    SELECT count(*)
    FROM
      -- As one list, because DuckDB would look at each row, which are many more.
      (
        SELECT unnest(list(DISTINCT page)) AS page
        FROM page_views
        WHERE project = $project AND day BETWEEN $to::DATE - 363 AND $to::DATE AND human + ai > 0
      )
    WHERE is_page(page)
  ) AS inAYear,
  if(bool_or(is_new IS NULL), NULL, count(*) FILTER (is_new)) AS new,
  coalesce(
    list({path: path, human: human, ai: ai} ORDER BY human + ai DESC, path) FILTER (is_new),
    []
  )[:5] AS newPages,
  (
    SELECT
      {
        views: coalesce(sum(human + ai), 0)::BIGINT,
        paths: coalesce(list(path ORDER BY human + ai DESC, path) FILTER (NOT is_for_ai), [])[:3],
        forAi: coalesce(list({path: path, human: human, ai: ai} ORDER BY human + ai DESC, path) FILTER (is_for_ai), [])[:3]
      }
    FROM other
  ) AS notPages,
  (SELECT coalesce(list(compared ORDER BY human + ai DESC, path), []) FROM compared) AS mostRead
FROM viewed
