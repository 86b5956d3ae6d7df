-- Grain: one row per project, audience and day with a drop, in the fifteen days up to `last_day`, or up to the last
-- day whose views have come.
CREATE OR REPLACE MACRO dropped_days(last_day) AS TABLE
WITH
  -- Breaks are in a subquery of their own, because a join cannot contain the argument if that is a
  -- subquery.
  break AS (
    SELECT project, path, day
    FROM notes
    WHERE is_break AND day <= last_day::DATE
  ),

  -- Days without views are no drop while it is unknown how late views come, or while theirs may be late.
  counted AS (
    SELECT project, day, last_day::DATE - days_late AS until, state, audience, n, ln(n + 0.5) AS size
    FROM
      (
        UNPIVOT (
          SELECT project, day, coalesce(delay_days - 1, days_awaited) AS days_late, state, human, ai
          FROM days JOIN data_delays USING (project)
          ANTI JOIN break ON break.path = '*' AND break.project = days.project AND break.day > days.day
          WHERE day BETWEEN last_day::DATE - 14 - 7 * 18 AND last_day::DATE - days_late AND is_own_file()
        )
        ON human, ai INTO NAME audience VALUE n
      )
  ),

  -- Each day, with the latest twelve loaded days of its weekday without an outage out of the sixteen before it.
  point AS (
    SELECT judged.project, judged.audience, judged.day, (past.day - judged.day) // 7 AS x, past.size
    FROM
      counted AS judged
      JOIN (FROM counted SEMI JOIN (FROM site_days WHERE NOT is_outage) USING (project, day)) AS past USING (project, audience)
    WHERE judged.day >= judged.until - 14 AND (judged.day - past.day) % 7 = 0 AND judged.day - past.day BETWEEN 7 AND 7 * 16
    -- DuckDB 1.5.6 fails on row_number() here.
    QUALIFY rank() OVER (PARTITION BY judged.project, judged.audience, judged.day ORDER BY past.day DESC) <= 12
  ),

  -- A Theil-Sen line as in `usual_range`, fitted to days instead of weeks.
  slope AS (
    SELECT project, audience, day, median((one.size - two.size) / (one.x - two.x)) AS slope
    FROM point AS one JOIN point AS two USING (project, audience, day)
    WHERE one.x > two.x
    GROUP BY ALL
  ),

  line AS (
    SELECT
      project,
      audience,
      day,
      median(size - slope * x) AS height,
      -- 2.5 times the distance that covers nine in ten days: two audiences make 730 days a year,
      -- and few of them may be reported by chance.
      2.5 * greatest((10 - 0.475 * count(*)) * mad(size - slope * x), 1.65 * exp(-height / 2)) AS reach
    FROM point JOIN slope USING (project, audience, day)
    GROUP BY ALL
    HAVING count(*) >= 8
  )

SELECT
  project,
  day,
  audience,
  n::BIGINT AS views,
  exp(height) - 0.5 AS expected,
  greatest(0, ceil(least(exp(height - reach), exp(height) / 2) - 0.5))::BIGINT AS low
FROM line JOIN counted USING (project, audience, day)
  -- A provisional day may still grow, to twice its count at most.
WHERE exp(height) >= 20 AND n < if(state = 'final', low, low / 2)
ORDER BY project, day, audience DESC;

COMMENT ON MACRO TABLE dropped_days IS 'Days when views dropped further than they usually do. The drop is larger than normal variation explains. One row per project, audience (human or ai) and day with a drop, in the fifteen days up to the given one, without days so recent that views may still come (data_delays): FROM dropped_days(''2026-11-15''). views is the count of the day. expected is the value of a line fitted to the last twelve days of the same weekday (at least 8), without outages (site_days). low is the fewest views that are not a drop: at most half of expected, and 2.5 times as far below the line as nine in ten such days lie. A day that is not final may still grow, so it is listed only below half of low. Days with fewer than 20 expected views are not judged, and nothing is compared across a break in notes.';
