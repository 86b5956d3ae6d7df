-- Grain: one row per project and audience whose seven days from `week_start` are all loaded. Only
-- weeks since the last break are used, and none before it with an outage.
CREATE OR REPLACE MACRO usual_range(week_start, project_id := NULL) AS TABLE
WITH
  -- Breaks are in a subquery of their own, because a join cannot contain the argument if that is a
  -- subquery.
  break AS (
    SELECT project, path, day
    FROM notes
    WHERE is_break AND day <= week_start::DATE + 6
  ),

  site_week AS (
    SELECT
      project,
      (week_start::DATE - day + 6) // 7 AS weeks_ago,
      sum(human)::DOUBLE AS human,
      sum(ai)::DOUBLE AS ai,
      (sum(human) + 0.5) / (sum(ai) + 0.5) AS gap
    FROM site_days
    ANTI JOIN break ON break.path = '*' AND break.project = site_days.project AND break.day > site_days.day
    WHERE project = coalesce(project_id, project) AND day <= week_start::DATE + 6 AND is_own_file()
    GROUP BY project, weeks_ago
    HAVING count(*) = 7 AND (weeks_ago = 0 OR NOT bool_or(is_outage))
  ),

  -- The views of each audience, and human views per AI view.
  week AS (
    SELECT project, series, weeks_ago, n, ln(if(series = 'gap', n, n + 0.5)) AS size
    FROM (UNPIVOT site_week ON human, ai, gap INTO NAME series VALUE n)
  ),

  -- This week and the same week a year earlier, and the twelve weeks before each, which show how far
  -- weeks are from their lines. A line is fitted to the latest eight full weeks of the twelve before.
  point AS (
    SELECT judged.project, judged.series, judged.weeks_ago AS of_week, judged.weeks_ago - week.weeks_ago AS x, week.size
    FROM week AS judged JOIN week ON week.project = judged.project AND week.series = judged.series
    WHERE judged.weeks_ago % 52 <= 16 AND judged.weeks_ago < 70 AND week.weeks_ago BETWEEN judged.weeks_ago + 1 AND judged.weeks_ago + 12
    QUALIFY row_number() OVER (PARTITION BY judged.project, judged.series, judged.weeks_ago ORDER BY week.weeks_ago) <= 8
  ),

  -- A Theil-Sen line: the median slope between any two weeks, at the median height. Medians ignore
  -- an unusual week, such as a holiday.
  slope AS (
    SELECT one.project, one.series, one.of_week, median((one.size - two.size) / (one.x - two.x)) AS slope
    FROM point AS one JOIN point AS two ON two.project = one.project AND two.series = one.series AND two.of_week = one.of_week
    WHERE one.x > two.x
    GROUP BY one.project, one.series, one.of_week
  ),

  line AS (
    SELECT project, series, of_week AS weeks_ago, count(*) AS k, median(point.size - slope * x) AS height
    FROM point JOIN slope USING (project, series, of_week)
    GROUP BY ALL
    HAVING k >= 4
  ),

  missed AS (
    SELECT project, series, weeks_ago, k, height, size - height AS off
    FROM line JOIN week USING (project, series, weeks_ago)
  ),

  -- Nine in ten weeks lie within 2.75 times the median distance of up to twelve earlier weeks from
  -- their own lines. The second term is chance alone.
  ranged AS (
    SELECT
      missed.*,
      greatest(2.75 * typical, if(missed.series = 'gap', 0, 1.65 * exp(-height / 2))) AS reach
    FROM
      missed
      JOIN (
        SELECT judged.project, judged.series, judged.weeks_ago, median(abs(earlier.off)) AS typical
        FROM missed AS judged JOIN missed AS earlier ON earlier.project = judged.project AND earlier.series = judged.series
        WHERE judged.weeks_ago IN (0, 52) AND judged.k = 8 AND earlier.weeks_ago BETWEEN judged.weeks_ago + 1 AND judged.weeks_ago + 12
        GROUP BY ALL
      ) AS distance
        ON distance.project = missed.project AND distance.series = missed.series AND distance.weeks_ago = missed.weeks_ago
  ),

  -- If the same week a year earlier was unusual, such as a holiday, this one may be too.
  placed AS (
    SELECT
      ranged.project,
      ranged.series,
      ranged.k,
      ranged.height + coalesce(last_year.off, 0) AS middle,
      ranged.reach * if(last_year.off IS NULL, 1, 1.5) AS half
    FROM
      ranged
      LEFT JOIN ranged AS last_year
        ON last_year.project = ranged.project
        AND last_year.series = ranged.series
        AND last_year.weeks_ago = 52
        AND abs(last_year.off) > last_year.reach
    WHERE ranged.weeks_ago = 0
  ),

  known AS (
    SELECT
      project,
      series,
      max(n) FILTER (weeks_ago = 0) AS n,
      count(*) AS weeks,
      max(n) FILTER (weeks_ago > 0) AS most_before
    FROM week
    GROUP BY ALL
    HAVING min(weeks_ago) = 0
  ),

  gap AS (
    SELECT project, ln(n) AS gap, middle, half
    FROM known JOIN placed USING (project, series)
    WHERE series = 'gap'
  )

SELECT
  known.project,
  known.series AS audience,
  n::BIGINT AS views,
  exp(placed.middle) AS expected,
  ceil(exp(placed.middle - placed.half) - 0.5)::BIGINT AS low,
  floor(exp(placed.middle + placed.half) - 0.5)::BIGINT AS high,
  k AS weeks_used,
  weeks,
  coalesce(n > most_before AND n > high AND weeks > 12, FALSE) AS is_record,
  exp(gap) AS human_per_ai,
  exp(gap.middle - gap.half) AS human_per_ai_low,
  exp(gap.middle + gap.half) AS human_per_ai_high,
  CASE
    WHEN gap > gap.half AND gap.middle > 0 THEN 'human'
    WHEN gap < -gap.half AND gap.middle < 0 THEN 'ai'
  END AS leader
FROM
  known
  LEFT JOIN placed USING (project, series)
  LEFT JOIN gap ON gap.project = known.project
WHERE known.series <> 'gap'
ORDER BY known.project, audience DESC;

COMMENT ON MACRO TABLE usual_range IS 'The range in which the views of a week usually lie. Example: FROM usual_range(''2026-11-09''). One row per project and audience (human or ai) whose seven days from the given one are all loaded; project_id := ''prj_1'' reads only that project. views is the count of the seven days. expected continues the line of the weeks_used full weeks before (8), whose slope is the median slope between any two of them. Nine in ten weeks lie between low and high. All three are NULL with fewer than 8 such weeks among the 12 before; a week with an outage, as in site_days, is not one. If the same week a year earlier was outside its own range, as during a holiday, this range shifts by as much and widens. weeks is the number of full weeks since the last break in notes, this one included. is_record means that no earlier full week, of at least 12, had as many views, and that this one is above its range: on a growing site, most weeks are the highest yet. human_per_ai is the number of human views per AI view, usually between human_per_ai_low and human_per_ai_high. leader is the audience with clearly more views; NULL if the difference is as small as such differences usually are. leader and the human_per_ai columns are the same in both rows.';
