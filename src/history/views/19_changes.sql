-- Grain: one row per project and page (or section, or site) viewed between two days, inclusive, or in the days compared
-- with them; most viewed first. Only here is defined what a change and a new page are.
CREATE OR REPLACE MACRO changes(first_day, last_day, days_earlier := NULL, months_earlier := NULL, per := 'page', project_id := NULL) AS TABLE
WITH
  asked AS (
    SELECT first_day::DATE AS first, last_day::DATE AS last, compared.first AS first_before, compared.last AS last_before
    FROM (SELECT internal.compared_days(first_day, last_day, days_earlier, months_earlier) AS compared)
    WHERE
      is_own_file()
      AND CASE
        WHEN per NOT IN ('page', 'section', 'site') THEN error('changes: per must be page, section or site')
        WHEN days_earlier < 0 OR months_earlier < 0 THEN error('changes: days_earlier and months_earlier must not be negative')
        ELSE internal.in_order(first_day, last_day)
      END
  ),

  loaded AS (
    SELECT
      project,
      count(*) FILTER (day >= first) AS days_loaded,
      count(*) FILTER (day BETWEEN first_before AND last_before AND NOT is_outage) AS days_before,
      -- Totals are compared if all days of both sides are loaded, and views per loaded day otherwise.
      if(
        days_loaded = any_value(last - first) + 1 AND days_before = any_value(last_before - first_before) + 1,
        1,
        days_loaded / nullif(days_before, 0)
      ) AS sides
    FROM site_days CROSS JOIN asked
    WHERE day <= last AND project = coalesce(project_id, project)
    GROUP BY project
  ),

  -- The bounds do not come from `asked`, because DuckDB then reads only the days between them, and groups their rows as
  -- they are stored; and the project is compared wherever rows are read, because DuckDB then skips those of all others.
  side AS (
    SELECT project, page AS path, true AS is_now, false AS is_before, sum(human) AS human, sum(ai) AS ai, sum(total) AS total, min(if(human + ai > 0, day, NULL)) AS first_view
    FROM page_views
    WHERE per <> 'site' AND project = coalesce(project_id, project) AND day BETWEEN first_day::DATE AND last_day::DATE
    GROUP BY ALL
    UNION ALL
    SELECT project, page, false, true, sum(human), sum(ai), sum(total), min(if(human + ai > 0, day, NULL))
    FROM page_views
    WHERE
      per <> 'site'
      AND project = coalesce(project_id, project)
      AND day BETWEEN
        internal.compared_days(first_day, last_day, days_earlier, months_earlier).first
        AND internal.compared_days(first_day, last_day, days_earlier, months_earlier).last
    GROUP BY ALL
    UNION ALL
    SELECT project, '', day >= first AS is_now, day BETWEEN first_before AND last_before AS is_before, sum(human), sum(ai), sum(total), NULL
    FROM site_days CROSS JOIN asked
    WHERE per = 'site' AND day <= last AND project = coalesce(project_id, project)
    GROUP BY ALL
    -- Without this, DuckDB would read nothing between days in the wrong order, and say nothing.
    UNION ALL BY NAME
    SELECT NULL AS project WHERE NOT internal.in_order(first_day, last_day)
  ),

  views AS (
    SELECT *
    FROM
      (
        SELECT
          project,
          -- Of the sums by page, which are few, not of the rows.
          if(per = 'section', section_of(side.path), side.path) AS path,
          bool_or(per = 'site' OR is_page(side.path)) AS is_page,
          coalesce(sum(human) FILTER (is_now), 0)::BIGINT AS human,
          coalesce(sum(ai) FILTER (is_now), 0)::BIGINT AS ai,
          coalesce(sum(total) FILTER (is_now), 0)::BIGINT AS total,
          coalesce(sum(human) FILTER (is_before), 0)::BIGINT AS human_before,
          coalesce(sum(ai) FILTER (is_before), 0)::BIGINT AS ai_before,
          coalesce(sum(total) FILTER (is_before), 0)::BIGINT AS total_before,
          min(first_view) AS first_view
        FROM side
        GROUP BY ALL
      )
      JOIN loaded USING (project)
  ),

  -- Nothing is compared across a day on which counting changed.
  broken AS (
    SELECT DISTINCT project, views.path
    FROM views JOIN notes USING (project) CROSS JOIN asked
    WHERE
      is_break
      AND day > first_before
      AND day <= last
      AND CASE per
        WHEN 'page' THEN views.path GLOB notes.path
        WHEN 'section' THEN concerns_section(notes.path, views.path)
        ELSE true
      END
  ),

  -- Pages first viewed in the range, as far as the twelve weeks before it tell.
  unseen AS (
    SELECT project, path, first_view
    FROM
      views
      ANTI JOIN (
        SELECT DISTINCT project, if(per = 'section', section_of(page), page) AS path
        FROM page_views
        WHERE per <> 'site' AND project = coalesce(project_id, project) AND day BETWEEN first_day::DATE - 84 AND first_day::DATE - 1 AND human + ai > 0
      ) USING (project, path)
      CROSS JOIN asked
    WHERE first_view >= first
  ),

  -- Most others were viewed in the year before. Only for the rest, if any, the whole history is read.
  candidate AS (
    SELECT *
    FROM
      unseen
      ANTI JOIN (
        SELECT page_views.project, if(per = 'section', section_of(page_views.page), page_views.page) AS path
        FROM page_views SEMI JOIN unseen ON unseen.project = page_views.project AND unseen.path = if(per = 'section', section_of(page_views.page), page_views.page)
        WHERE per <> 'site' AND page_views.project = coalesce(project_id, page_views.project) AND day BETWEEN first_day::DATE - 364 AND first_day::DATE - 85 AND human + ai > 0
      ) USING (project, path)
  ),

  -- Whether enough days before a first view are loaded, by day, because many pages are first viewed on the same day.
  known AS (
    SELECT project, first_view, count(*) >= 28 AS is_known
    FROM
      (SELECT DISTINCT project, first_view FROM candidate)
      JOIN site_days USING (project)
    WHERE site_days.day BETWEEN first_view - 56 AND first_view - 1 AND NOT is_outage
    GROUP BY ALL
  ),

  new_page AS (
    SELECT project, path, coalesce(is_known, false) AS is_known
    FROM
      candidate
      ANTI JOIN (
        SELECT page_views.project, if(per = 'section', section_of(page_views.page), page_views.page) AS path
        -- Unlike the anti-join, this join lets DuckDB skip the rows of other pages while it reads.
        FROM page_views SEMI JOIN candidate ON candidate.project = page_views.project AND candidate.path = if(per = 'section', section_of(page_views.page), page_views.page)
        WHERE per <> 'site' AND page_views.project = coalesce(project_id, page_views.project) AND day < first_day::DATE AND human + ai > 0
      ) USING (project, path)
      LEFT JOIN known USING (project, first_view)
  )

SELECT
  project,
  if(per = 'site', NULL, views.path) AS path,
  days_loaded,
  days_before,
  if(days_loaded = 0, NULL, views.human) AS human,
  if(days_loaded = 0, NULL, views.ai) AS ai,
  if(days_loaded = 0, NULL, views.total) AS total,
  views.ai / nullif(views.human + views.ai, 0) AS ai_share,
  if(days_before = 0, NULL, human_before) AS human_before,
  if(days_before = 0, NULL, ai_before) AS ai_before,
  if(days_before = 0, NULL, total_before) AS total_before,
  ai_before / nullif(human_before + ai_before, 0) AS ai_share_before,
  if(broken.path IS NULL AND days_loaded > 0, views.human / nullif(human_before * sides, 0) - 1, NULL) AS human_change,
  if(broken.path IS NULL AND days_loaded > 0, views.ai / nullif(ai_before * sides, 0) - 1, NULL) AS ai_change,
  if(broken.path IS NULL AND days_loaded > 0, views.total / nullif(total_before * sides, 0) - 1, NULL) AS total_change,
  if(new_page.path IS NULL, false, nullif(is_known, false)) AS is_new,
  views.is_page
FROM
  views
  LEFT JOIN new_page USING (project, path)
  LEFT JOIN broken USING (project, path)
WHERE per = 'site' OR views.human + views.ai + views.total + human_before + ai_before + total_before > 0
ORDER BY views.total DESC, views.path, project;

COMMENT ON MACRO TABLE changes IS 'Views of each page between two days, and the change. Both days are included: FROM changes(''2026-11-01'', ''2026-11-30''). One row per project and page viewed in the range or in the days that it is compared with, most viewed first. per := ''section'' has a row for each section, the first part of a path, such as /docs, and per := ''site'' one for the site, without a path; project_id := ''prj_1'' reads only that project, which takes less time among many. Whole calendar months are compared with as many months just before them, and other days with as many days; or with those days_earlier days earlier, where 364 is a year on the same weekdays, and 0 is no comparison; or with those months_earlier months earlier, where 12 is a year. human_before, ai_before, total_before and ai_share_before are of these days. days_loaded and days_before count the loaded days of each side, days_before without outages as in site_days; views of a side without any are NULL, never zero. human_change, ai_change and total_change compare the views if all days of both sides are loaded, and views per loaded day otherwise: 0.1 means 10% more. They are NULL if there is nothing to compare with, or if the notes have a break in between. Compare whole weeks or months, because weekends differ. is_new means that the page was never viewed before the range; NULL if fewer than 28 of the 56 days before its first view are loaded. is_page is that of the macro is_page: lists of pages leave out files and system addresses, and lists of sections those without a page.';
