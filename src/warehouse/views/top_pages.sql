-- Grain: one row per project and path viewed between two days, inclusive; most viewed first.
CREATE OR REPLACE MACRO top_pages(first_day, last_day) AS TABLE
SELECT project, path, human, ai, total, human_change, ai_change, is_new
FROM changes(first_day, last_day)
WHERE
  total > 0
  AND (
    SELECT
      CASE id
        WHEN '{file}' THEN true
        ELSE error('top_pages reads the current database, which is not the one it belongs to: run USE with the attached database first, then FROM top_pages(…)')
      END
    FROM this_file
  )
ORDER BY total DESC, path, project;

COMMENT ON MACRO TABLE top_pages IS 'Pages by views between two days, inclusive, most viewed first. One row per project and path viewed: FROM top_pages(''2026-11-01'', ''2026-11-30''). human_change, ai_change and is_new are those of the macro changes, compared with as many days before.';
