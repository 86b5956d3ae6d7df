-- Grain: one row per project and loaded day, with zeros on days when the page was not viewed.
CREATE OR REPLACE MACRO page_history(path) AS TABLE
WITH
  viewed AS (
    SELECT project, day, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai, sum(total)::BIGINT AS total
    FROM page_views
    WHERE page = page_of(path)
    GROUP BY ALL
  )

SELECT
  site.project,
  site.day,
  coalesce(viewed.human, 0) AS human,
  coalesce(viewed.ai, 0) AS ai,
  coalesce(viewed.total, 0) AS total
FROM site_days AS site
LEFT JOIN viewed USING (project, day)
WHERE
  is_own_file()
  AND CASE
    WHEN EXISTS (FROM viewed) THEN true
    ELSE error('page_history: no page ' || page_of(path) || ' was ever viewed' || coalesce('; near it: ' || (
      SELECT string_agg(page, ', ')
      FROM (
        SELECT page
        FROM (SELECT DISTINCT page FROM page_views WHERE day > (SELECT max(day) FROM days) - 90)
        WHERE jaro_winkler_similarity(page, page_of(path)) > 0.8
        ORDER BY jaro_winkler_similarity(page, page_of(path)) DESC, page
        LIMIT 3
      )
    ), ''))
  END
ORDER BY project, day;

COMMENT ON MACRO TABLE page_history IS 'Views of one page on every loaded day. All of its addresses count, and a day without a view is zero. Fails for a page that was never viewed, and suggests pages of the last 90 days with similar paths. One row per project and loaded day: FROM page_history(''/quickstart'')';
