-- Grain: one row per project and audience whose seven days from `week_start` are all loaded.
CREATE OR REPLACE MACRO usual_range(week_start) AS TABLE
WITH
  site_week AS (
    SELECT project, (week_start::DATE - day + 6) // 7 AS weeks_ago, sum(human) AS human, sum(ai) AS ai
    FROM site_days
    WHERE day <= week_start::DATE + 6
    GROUP BY project, weeks_ago
    HAVING count(*) = 7
  ),

  week AS (
    SELECT project, audience, weeks_ago, n, ln(n + 0.5) AS size
    FROM (UNPIVOT site_week ON human, ai INTO NAME audience VALUE n)
  ),

  -- The week itself and the same week of last year, each with the latest twelve full weeks out of
  -- the sixteen before it.
  point AS (
    SELECT judged.project, judged.audience, judged.weeks_ago AS of_week, judged.weeks_ago - week.weeks_ago AS x, week.size
    FROM week AS judged JOIN week USING (project, audience)
    WHERE judged.weeks_ago IN (0, 52) AND x BETWEEN -16 AND -1
    QUALIFY row_number() OVER (PARTITION BY judged.project, judged.audience, of_week ORDER BY x DESC) <= 12
  ),

  -- A Theil-Sen line: the median slope between any two weeks, at the median height. Medians ignore
  -- an unusual week, such as a holiday.
  slope AS (
    SELECT project, audience, of_week, median((one.size - two.size) / (one.x - two.x)) AS slope
    FROM point AS one JOIN point AS two USING (project, audience, of_week)
    WHERE one.x > two.x
    GROUP BY ALL
  ),

  line AS (
    SELECT
      project,
      audience,
      of_week AS weeks_ago,
      count(*) AS k,
      median(size - slope * x) AS height,
      -- Weeks lie closer to the line fitted to them than the next week will, so fewer weeks need a
      -- larger factor. The second term is chance alone.
      greatest((10 - 0.475 * k) * mad(size - slope * x), 1.65 * exp(-height / 2)) AS reach
    FROM point JOIN slope USING (project, audience, of_week)
    GROUP BY ALL
    HAVING k >= 8
  ),

  -- If the same week of last year was unusual, such as a holiday, this one may be too.
  last_year AS (
    SELECT project, audience, size - height AS shift
    FROM line JOIN week USING (project, audience, weeks_ago)
    WHERE weeks_ago = 52 AND abs(size - height) > reach
  ),

  known AS (
    SELECT
      project,
      audience,
      max(n) FILTER (weeks_ago = 0) AS n,
      count(*) AS weeks,
      max(n) FILTER (weeks_ago > 0) AS most_before
    FROM week
    GROUP BY ALL
    HAVING min(weeks_ago) = 0
  ),

  placed AS (
    SELECT
      *,
      height + coalesce(shift, 0) AS middle,
      reach * if(shift IS NULL, 1, 1.5) AS half
    FROM
      known
      LEFT JOIN (FROM line WHERE weeks_ago = 0) AS line USING (project, audience)
      LEFT JOIN last_year USING (project, audience)
  )

SELECT
  project,
  audience,
  n::BIGINT AS views,
  exp(middle) AS expected,
  ceil(exp(middle - half) - 0.5)::BIGINT AS low,
  floor(exp(middle + half) - 0.5)::BIGINT AS high,
  k AS weeks_used,
  weeks,
  coalesce(n > most_before AND n > high AND weeks > 12, FALSE) AS is_record
FROM placed
ORDER BY project, audience DESC;

COMMENT ON MACRO TABLE usual_range IS 'The range in which the views of a week usually lie. One row per project and audience (human or ai) whose seven days from the given one are all loaded: FROM usual_range(''2026-11-09''). views is the count for the seven days. expected is the value of a line fitted to the weeks_used full weeks before (at most 12), with the median slope between any two of them. Nine in ten weeks that follow the line lie between low and high, which are a multiple of the median distance from the line. All three are NULL with fewer than 8 weeks. If the same week of last year was outside its own range, such as for a holiday, this range shifts by as much and widens. weeks is the number of full weeks known, including this one. is_record means that no earlier full week, of at least 12, had as many views, and that the week is above its range: on a growing site, most weeks are the highest yet.';
