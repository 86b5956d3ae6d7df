-- Grain: one row per project and page (or section) that one audience read between two days, inclusive, and the other rarely
-- did. Only here is defined what that means. Bots visit an address in one night, sometimes past midnight, so the same has
-- to be true of the core: the views without the two days with the most of each address.
CREATE OR REPLACE MACRO one_sided(first_day, last_day, per := 'page', project_id := NULL) AS TABLE
WITH
  address AS (
    SELECT
      project,
      page,
      sum(human)::BIGINT AS human,
      sum(ai)::BIGINT AS ai,
      sum(human) - list_sum(max(human, 2)) AS human_core,
      sum(ai) - list_sum(max(ai, 2)) AS ai_core
    FROM page_views
    WHERE
      project = coalesce(project_id, project)
      AND day BETWEEN first_day::DATE AND last_day::DATE
      AND is_own_file()
      AND if(per IN ('page', 'section'), true, error('one_sided: per must be page or section'))
    GROUP BY project, page, page_views.path
  ),

  read AS (
    SELECT
      project,
      if(per = 'section', section_of(page), page) AS path,
      sum(human)::BIGINT AS human,
      sum(ai)::BIGINT AS ai,
      sum(human_core) AS human_core,
      sum(ai_core) AS ai_core
    FROM address
    GROUP BY ALL
  )

SELECT project, path, if(human > ai, 'human', 'ai') AS audience, human, ai
FROM read
WHERE greatest(human, ai) >= 10 * least(human, ai) AND if(human > ai, human_core >= greatest(50, 10 * ai_core), ai_core >= greatest(50, 10 * human_core))
ORDER BY greatest(human, ai) DESC, path, project;

COMMENT ON MACRO TABLE one_sided IS 'Pages read by one audience, rarely by the other. Between two days, inclusive, most viewed first: FROM one_sided(''2026-11-09'', ''2026-11-15''). One row per project and page: audience (human or ai) has at least 50 views, and ten or more for every view of the other, even if its two busiest days are not counted of each address, so a bot of one night is not listed. Files and system addresses are among them: is_page(path) tells. per := ''section'' has a row for each section, the first part of a path; project_id := ''prj_1'' reads only that project.';
