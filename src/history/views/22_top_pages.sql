-- Grain: one row per project and page viewed between two days, inclusive; most viewed first.
CREATE OR REPLACE MACRO top_pages(first_day, last_day, project_id := NULL) AS TABLE
SELECT project, path, human, ai, total, human_change, ai_change, is_new
FROM changes(first_day, last_day, project_id := project_id)
WHERE
  total > 0
  AND is_page
  AND is_own_file()
ORDER BY total DESC, path, project;

COMMENT ON MACRO TABLE top_pages IS 'The most-viewed pages between two days, inclusive. One row per project and page viewed, without files and system addresses (is_page): FROM top_pages(''2026-11-01'', ''2026-11-30''). human_change, ai_change and is_new are those of the macro changes, which compares with the days or months before; project_id := ''prj_1'' as there.';
