-- Grain: one row per project, audience and page whose views on a day, or on a few days, differ from what is usual on these
-- weekdays; largest difference first. Only here is defined what made the difference on a day.
CREATE OR REPLACE MACRO day_differences(first_day, last_day := NULL) AS TABLE
WITH
  -- Each day with the loaded days of its weekday in the eight weeks before it, since the last break.
  pair AS (
    SELECT site.project, site.day, past.day AS day_before
    FROM site_days AS site JOIN site_days AS past USING (project)
    WHERE
      site.day BETWEEN first_day::DATE AND coalesce(last_day, first_day)::DATE
      AND past.day BETWEEN site.day - 56 AND site.day - 7
      AND NOT site.is_outage
      AND NOT past.is_outage
      AND (site.day - past.day) % 7 = 0
      AND is_own_file()
      AND NOT EXISTS (
        FROM notes
        WHERE notes.project = site.project AND is_break AND path = '*' AND notes.day > past.day AND notes.day <= site.day
      )
  ),

  -- A median of fewer days says little.
  judged AS (
    SELECT project, day, count(*) AS days
    FROM pair
    GROUP BY ALL
    HAVING days >= 3
  ),

  viewed AS (
    SELECT project, page AS path, day, sum(human) AS human, sum(ai) AS ai
    FROM page_views
    WHERE day BETWEEN first_day::DATE - 56 AND coalesce(last_day, first_day)::DATE
    GROUP BY ALL
    -- Without this, DuckDB would read nothing between days in the wrong order, and say nothing.
    UNION ALL BY NAME
    SELECT NULL AS project WHERE NOT internal.in_order(first_day, coalesce(last_day, first_day))
  ),

  past AS (
    SELECT pair.project, path, pair.day, list(human) AS human, list(ai) AS ai
    FROM pair JOIN viewed ON viewed.project = pair.project AND viewed.day = pair.day_before
    GROUP BY ALL
  ),

  -- On a day without views, a page has no row, which counts as zero.
  page_day AS (
    SELECT
      project,
      path,
      coalesce(viewed.human, 0) AS human,
      coalesce(viewed.ai, 0) AS ai,
      coalesce(list_median(list_resize(past.human, days, 0)), 0) AS usual_human,
      coalesce(list_median(list_resize(past.ai, days, 0)), 0) AS usual_ai
    FROM viewed FULL JOIN past USING (project, path, day) JOIN judged USING (project, day)
  ),

  site_day AS (
    SELECT
      pair.project,
      pair.day,
      any_value(site.human) - median(earlier.human) AS human,
      any_value(site.ai) - median(earlier.ai) AS ai
    FROM
      pair
      JOIN judged USING (project, day)
      JOIN site_days AS site ON site.project = pair.project AND site.day = pair.day
      JOIN site_days AS earlier ON earlier.project = pair.project AND earlier.day = pair.day_before
    GROUP BY ALL
  ),

  -- What a break of some pages changed is not compared.
  page AS (
    SELECT project, path, sum(human) AS human, sum(ai) AS ai, sum(usual_human) AS usual_human, sum(usual_ai) AS usual_ai
    FROM page_day
    WHERE NOT EXISTS (
      FROM notes
      WHERE
        notes.project = page_day.project
        AND is_break
        AND notes.path <> '*'
        AND page_day.path GLOB notes.path
        AND notes.day BETWEEN first_day::DATE - 55 AND coalesce(last_day, first_day)::DATE
    )
    GROUP BY ALL
  ),

  compared AS (
    SELECT project, path, 'human' AS audience, human AS views, usual_human AS usual
    FROM page
    UNION ALL
    SELECT project, path, 'ai', ai, usual_ai
    FROM page
  ),

  site AS (UNPIVOT (SELECT project, sum(human) AS human, sum(ai) AS ai FROM site_day GROUP BY project) ON human, ai INTO NAME audience VALUE site_difference)

SELECT
  project,
  audience,
  path,
  views::BIGINT AS views,
  round(usual)::BIGINT AS usual,
  round(views - usual)::BIGINT AS difference,
  round(site_difference)::BIGINT AS site_difference,
  (views - usual) / nullif(site_difference, 0) AS share
FROM compared JOIN site USING (project, audience)
WHERE round(views - usual) <> 0
ORDER BY abs(views - usual) DESC, path, audience DESC, project;

COMMENT ON MACRO TABLE day_differences IS 'What made the difference on a day, or on a few. Example: FROM day_differences(''2026-11-10''), or day_differences(''2026-11-07'', last_day := ''2026-11-08''). One row per project, audience and page, those whose views differ most from usual first. usual is the median of the same weekday in the last eight weeks; of several days, the sum. site_difference is the difference of the whole site, and share is the page''s part of it: 0.64 is 64% of the rise or fall, and a negative share goes the other way. No rows for outages (site_days), and none if fewer than three of these weekdays are loaded, and no outages, since the last break in notes.';
