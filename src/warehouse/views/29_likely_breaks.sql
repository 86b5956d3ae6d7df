-- Grain: one row per project in which counting probably changed in the two weeks up to `last_day`.
CREATE OR REPLACE MACRO likely_breaks(last_day) AS TABLE
WITH
  -- Breaks are in a subquery of their own, because a join cannot contain the argument if that is a
  -- subquery.
  break AS (
    SELECT project, path, day
    FROM notes
    WHERE is_break AND day <= last_day::DATE
  ),

  site_week AS (
    SELECT project, (last_day::DATE - day) // 7 AS weeks_ago
    FROM site_days
    ANTI JOIN break ON break.path = '*' AND break.project = site_days.project AND break.day > site_days.day
    WHERE day BETWEEN last_day::DATE - 118 AND last_day::DATE AND is_own_file()
    GROUP BY project, weeks_ago
    HAVING count(*) = 7
  ),

  page_week AS (
    SELECT project, page AS path, (last_day::DATE - day) // 7 AS weeks_ago, sum(human)::DOUBLE AS human, sum(ai)::DOUBLE AS ai
    FROM page_views
    WHERE day BETWEEN last_day::DATE - 118 AND last_day::DATE
    GROUP BY ALL
  ),

  -- Each week of a page, with its average of the four weeks before.
  placed AS (
    SELECT
      *,
      avg(human) OVER four_before AS human_before,
      avg(ai) OVER four_before AS ai_before,
      count(*) OVER four_before AS weeks_before
    FROM page_week SEMI JOIN site_week USING (project, weeks_ago)
    WHERE human > 0 AND ai > 0
    WINDOW four_before AS (PARTITION BY project, path ORDER BY weeks_ago RANGE BETWEEN 1 FOLLOWING AND 4 FOLLOWING)
  ),

  -- The same in both directions.
  compared AS (
    SELECT
      project,
      weeks_ago,
      from_audience,
      if(from_audience = 'human', human, ai) AS source,
      if(from_audience = 'human', ai, human) AS target,
      if(from_audience = 'human', human_before, ai_before) AS source_before,
      if(from_audience = 'human', ai_before, human_before) AS target_before
    FROM placed CROSS JOIN (VALUES ('human'), ('ai')) AS directions (from_audience)
    WHERE weeks_before = 4
  ),

  -- What the middle page lost and gained, as shares of its views before.
  week AS (
    SELECT
      project,
      weeks_ago,
      from_audience,
      count(*) AS pages,
      1 - exp(median(ln(source / source_before))) AS lost,
      median((target - target_before) / source_before) AS gained,
      (lost + gained) / 2 AS moved,
      median(ln((source + target) / (source_before + target_before))) AS change,
      avg((source < source_before AND target > target_before)::INTEGER) AS as_moved,
      corr(ln(target / target_before), source_before / target_before) AS tilt
    FROM compared
    WHERE source_before >= 10 AND target_before >= 10
    GROUP BY ALL
    HAVING count(*) >= 20
  ),

  -- The twelve weeks before the last one show how the site grows, and how much this varies.
  earlier AS (
    SELECT
      project,
      from_audience,
      median(lost) AS lost,
      median(gained) AS gained,
      median(change) AS change,
      median(as_moved) AS as_moved,
      mad(moved) AS typical
    FROM week
    WHERE weeks_ago BETWEEN 2 AND 13
    GROUP BY ALL
    HAVING count(*) >= 4
  ),

  -- Views moved if the middle page lost what it gained, and its sum stayed. Three more signs can each be
  -- chance, so they count together: how unusual the shift is, on how many more pages it shows, and
  -- whether pages with more to give gained more. With fewer pages, the last two are less certain.
  found AS (
    SELECT
      week.project,
      week.from_audience,
      week.pages,
      week.lost - earlier.lost AS more_lost,
      week.gained - earlier.gained AS more_gained,
      (more_lost + more_gained) / 2 AS moved,
      sqrt(sqrt(week.pages / 325)) AS certainty,
      moved / greatest(typical, 0.004) / 4.5 AS unusual,
      certainty * (week.as_moved - earlier.as_moved) / 0.07 AS spread,
      certainty * tilt / 0.13 AS tilted
    FROM week JOIN earlier ON earlier.project = week.project AND earlier.from_audience = week.from_audience
    WHERE
      weeks_ago = 0
      AND moved > 0.03
      AND least(more_lost, more_gained) > moved / 3
      AND abs(week.change - earlier.change) < moved / 2
      AND least(unusual, 2.5) + 1.5 * least(greatest(spread, -1), 2.5) + 1.25 * least(greatest(tilted, -1), 2.5) > 5.125
  ),

  -- The audience's share of the site by day, against the same weekdays of the four weeks before.
  site_share AS (
    SELECT
      project,
      day,
      from_audience,
      moved,
      found.pages,
      if(from_audience = 'human', human, ai) / nullif(human + ai, 0) AS share
    FROM site_days JOIN found USING (project)
    WHERE day BETWEEN last_day::DATE - 41 AND last_day::DATE
  )

SELECT
  now.project,
  coalesce(
    min(now.day) FILTER (before.share - now.share > before.share * now.moved / 2),
    max(now.day) - 6
  ) AS day,
  now.from_audience,
  if(now.from_audience = 'human', 'ai', 'human') AS to_audience,
  any_value(now.moved) AS share,
  any_value(now.pages) AS pages
FROM
  site_share AS now
  JOIN (
    SELECT project, (last_day::DATE - day) % 7 AS weekday, median(share) AS share
    FROM site_share
    WHERE day <= last_day::DATE - 14
    GROUP BY ALL
  ) AS before
    ON before.project = now.project AND before.weekday = (last_day::DATE - now.day) % 7
WHERE now.day > last_day::DATE - 14
GROUP BY now.project, now.from_audience
ORDER BY now.project;

COMMENT ON MACRO TABLE likely_breaks IS 'Changes of what is counted, which belong in notes.yaml: on most pages at once, views moved from one audience to the other, and their sum stayed. One row per project: FROM likely_breaks(''2026-11-15''). The seven days up to the given one are compared with the four weeks before, on pages with at least 10 human and 10 AI views a week, and with how much seemed to move in the weeks before those. Empty with fewer than 20 such pages or nine full weeks since the last break. day is the first day in the last two weeks with at least half of the shift. from_audience and to_audience are human or ai. share is the share of the views of from_audience that moved, as the median of the pages compared.';
