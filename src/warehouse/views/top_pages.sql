-- Grain: one row per project and path viewed between two days, inclusive; most viewed first.
CREATE OR REPLACE MACRO top_pages(first_day, last_day) AS TABLE
SELECT
  project,
  path,
  sum(human)::BIGINT AS human,
  sum(ai)::BIGINT AS ai,
  sum(total)::BIGINT AS total
FROM page_views
WHERE
  day BETWEEN first_day::DATE AND last_day::DATE
  AND (
    SELECT
      CASE id
        WHEN '{file}' THEN true
        ELSE error('top_pages reads the current database, which is not the one it belongs to: run USE with the attached database first, then FROM top_pages(…)')
      END
    FROM this_file
  )
GROUP BY ALL
ORDER BY total DESC, path, project;

COMMENT ON MACRO TABLE top_pages IS 'Pages by views between two days, inclusive, most viewed first. One row per project and path viewed: FROM top_pages(''2026-11-01'', ''2026-11-30'')';
