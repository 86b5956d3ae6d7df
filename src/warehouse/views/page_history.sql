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
WHERE (
  SELECT
    CASE id
      WHEN '{file}' THEN true
      ELSE error('page_history reads the database in use, which is another: USE the attached one first, then FROM page_history(…)')
    END
  FROM this_file
)
ORDER BY project, day;

COMMENT ON MACRO TABLE page_history IS 'Views of one page on every loaded day, zero if it had none. One row per project and loaded day: FROM page_history(''/quickstart'')';
