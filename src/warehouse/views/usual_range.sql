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

  -- The week itself, and the same week of last year, each with the last twelve full weeks out of
  -- the sixteen before it.
  point AS (
    SELECT judged.project, judged.audience, judged.weeks_ago AS of_week, judged.weeks_ago - week.weeks_ago AS x, week.size
    FROM week AS judged JOIN week USING (project, audience)
    WHERE judged.weeks_ago IN (0, 52) AND x BETWEEN -16 AND -1
    QUALIFY row_number() OVER (PARTITION BY judged.project, judged.audience, of_week ORDER BY x DESC) <= 12
  ),

  -- A Theil-Sen line: the median slope between any two weeks, at the median height. Neither asks
  -- what a holiday among the weeks was like.
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
      -- Few weeks lie closer to their own line than the next one will. The second is chance alone.
      greatest((10 - 0.475 * k) * mad(size - slope * x), 1.65 * exp(-height / 2)) AS reach
    FROM point JOIN slope USING (project, audience, of_week)
    GROUP BY ALL
    HAVING k >= 8
  ),

  -- If the same week of last year was unusual, as at a holiday, this one may be too.
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

COMMENT ON MACRO TABLE usual_range IS 'Where the views of a week usually lie. One row per project and audience (human or ai) whose seven days from the given one are all loaded: FROM usual_range(''2026-11-09''). views is the count for the seven days. low and high are where nine of ten weeks fall that keep to the line of the weeks_used full weeks before (12 at most), and expected is that line; they are NULL with fewer than 8. The line is the median slope between any two of those weeks; low and high are a multiple of their median distance from it. If the same week of last year left its own range, as at a holiday, the range moves by as much and widens. weeks is the number of full weeks known, this one included. is_record says that no full week before had as many views, of 12 at least, and that the week lies above its range, since in a growing site most weeks are the highest ever.';
