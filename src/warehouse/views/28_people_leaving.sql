-- Grain: one row per project and page that is losing people but not AI.
CREATE OR REPLACE MACRO people_leaving(before_day) AS TABLE
WITH
  -- Breaks are in a subquery of their own, because a join cannot contain the argument if that is a
  -- subquery.
  break AS (
    SELECT project, path, day, day >= before_day::DATE - 133 AS is_recent
    FROM notes
    WHERE is_break AND day <= before_day::DATE - 1
  ),

  -- The last eight full weeks before the day, and the eight before them.
  site_week AS (
    SELECT project, week, row_number() OVER (PARTITION BY project ORDER BY week DESC) <= 8 AS is_newer
    FROM site_weeks
    ANTI JOIN break ON break.path = '*' AND break.project = site_weeks.project AND break.day > site_weeks.week
    WHERE is_own_file() AND days_loaded = 7 AND week BETWEEN date_trunc('week', before_day::DATE)::DATE - 126 AND date_trunc('week', before_day::DATE)::DATE - 7
    QUALIFY
      count(*) OVER (PARTITION BY project) >= 16
      AND row_number() OVER (PARTITION BY project ORDER BY week DESC) <= 16
  ),

  -- A filter on days lets DuckDB skip parts of the file; one on weeks would not.
  site_day AS (
    SELECT project, week + weekday::INTEGER AS day, is_newer
    FROM site_week CROSS JOIN range(7) AS days (weekday)
  ),

  -- Without the two largest days, since a bot of one night, sometimes past midnight, is neither readers nor a loss of them.
  page AS (
    SELECT
      project,
      path,
      coalesce(sum(human) FILTER (is_newer) - list_sum(max(human, 2) FILTER (is_newer)), 0)::DOUBLE AS human,
      coalesce(sum(human) FILTER (NOT is_newer) - list_sum(max(human, 2) FILTER (NOT is_newer)), 0)::DOUBLE AS human_before,
      coalesce(sum(ai) FILTER (is_newer) - list_sum(max(ai, 2) FILTER (is_newer)), 0)::DOUBLE AS ai,
      coalesce(sum(ai) FILTER (NOT is_newer) - list_sum(max(ai, 2) FILTER (NOT is_newer)), 0)::DOUBLE AS ai_before
    FROM page_views JOIN site_day USING (project, day)
    ANTI JOIN break ON is_recent AND break.project = page_views.project AND page_views.path GLOB break.path
    GROUP BY ALL
    HAVING human_before >= 8 * 50 AND ai_before >= 8 * 10 AND human > 0 AND ai > 0
  ),

  beside AS (
    SELECT
      *,
      ln(human / human_before) AS human_log,
      ln(ai / ai_before) AS ai_log,
      human_log - median(human_log) OVER (PARTITION BY project) AS human_deviation,
      ai_log - median(ai_log) OVER (PARTITION BY project) AS ai_deviation,
      1.4826 * mad(human_log) OVER (PARTITION BY project) AS spread
    FROM page
  )

SELECT
  project,
  path,
  exp(human_deviation) - 1 AS human_change,
  exp(ai_deviation) - 1 AS ai_change,
  human_deviation / sqrt(spread ^ 2 + 1 / human) AS z,
  human / 8 AS weekly_human,
  human_before / 8 AS weekly_human_before,
  ai / 8 AS weekly_ai,
  ai_before / 8 AS weekly_ai_before
FROM beside
WHERE human_deviation <= -ln(1.25) AND z <= -3 AND ai_deviation >= greatest(human_deviation / 2, -ln(1.5))
ORDER BY project, z, path;

COMMENT ON MACRO TABLE people_leaving IS 'Pages that are losing human views but not AI views: people may get their answers elsewhere, or the page may no longer meet their needs. One row per project and page, most certain first: FROM people_leaving(''2026-11-09''). The last eight full weeks before the week of the given day are compared with the eight before them. The result is empty unless sixteen of the last eighteen weeks are fully loaded. human_change and ai_change are relative to the median page: -0.3 is 30% less than that page. A page is listed if its human views fell by at least a fifth relative to the median page and by at least three times the usual deviation (z), while its AI views fell by less than half as much on a log scale, and by at most a third. The two days with the most views of each side are left out, so a bot of one night does not count. Pages with fewer than 50 human or 10 AI views a week before are left out, and so are pages with a break in notes. weekly_human, weekly_human_before, weekly_ai and weekly_ai_before are averages, without these days.';
