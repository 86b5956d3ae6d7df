-- Grain: one row per project and loaded day, with zeros on days when the page was not viewed.
CREATE OR REPLACE MACRO page_history(page) AS TABLE
SELECT
  site.project,
  site.day,
  coalesce(view.human, 0) AS human,
  coalesce(view.ai, 0) AS ai,
  coalesce(view.total, 0) AS total
FROM site_days AS site
LEFT JOIN (FROM page_views WHERE path = page) AS view USING (project, day)
WHERE
  is_own_file()
  AND CASE
    WHEN EXISTS (FROM page_views WHERE path = page) THEN true
    ELSE error('page_history: no page ' || page || ' was ever viewed' || coalesce('; near it: ' || (
      SELECT string_agg(path, ', ')
      FROM (
        SELECT path
        FROM (SELECT DISTINCT path FROM page_views WHERE day > (SELECT max(day) FROM day_loads) - 90)
        WHERE jaro_winkler_similarity(path, page) > 0.8
        ORDER BY jaro_winkler_similarity(path, page) DESC, path
        LIMIT 3
      )
    ), ''))
  END
ORDER BY project, day;

COMMENT ON MACRO TABLE page_history IS 'Views of one page on every loaded day, zero if it had none. Fails for a page that was never viewed, and suggests pages of the last 90 days with similar paths. One row per project and loaded day: FROM page_history(''/quickstart'')';
