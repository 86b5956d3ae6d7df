-- Grain: one row per fully loaded week of a range and audience, with the views expected of the page.
-- As in the macro movers, they follow from its eight full weeks before without an outage and the trend of
-- the site, here of the hundred most read pages, and 95% of weeks lie within. NULL with fewer than three
-- weeks before.
WITH
  whole_week AS (
    SELECT week, row_number() OVER (ORDER BY week) AS number
    FROM site_weeks
    WHERE project = $project AND is_whole AND week BETWEEN date_trunc('week', $from::DATE)::DATE - 84 AND $to::DATE - 6
  ),

  top AS (
    SELECT page AS path
    FROM page_views
    WHERE project = $project AND day BETWEEN $to::DATE - 27 AND $to::DATE
    GROUP BY page
    ORDER BY sum(human + ai) DESC
    LIMIT 100
  ),

  viewed AS (
    SELECT date_trunc('week', day)::DATE AS week, page AS path, sum(human)::DOUBLE AS human, sum(ai)::DOUBLE AS ai
    FROM page_views
    WHERE
      project = $project
      AND (page = $path OR page IN (FROM top))
      AND day BETWEEN date_trunc('week', $from::DATE)::DATE - 84 AND $to::DATE
    GROUP BY ALL
  ),

  cell AS (
    SELECT
      audience,
      path,
      week,
      number,
      coalesce(if(audience = 'human', human, ai), 0) AS n,
      ln(n + 0.5) AS size,
      path = $path AS is_own
    FROM
      (SELECT DISTINCT path FROM viewed)
      CROSS JOIN whole_week
      CROSS JOIN (VALUES ('human'), ('ai')) AS audiences (audience)
      LEFT JOIN viewed USING (path, week)
  ),

  -- A median, so that moves of some pages do not change the course.
  course AS (
    SELECT audience, week, median(size - middle) AS course
    FROM (
      SELECT *, median(size) OVER (PARTITION BY audience, path) AS middle, min(n) OVER (PARTITION BY audience, path) AS least
      FROM cell
    )
    WHERE least > 0 AND middle >= ln(8)
    GROUP BY ALL
  ),

  restless AS (
    SELECT audience, greatest(0, median(psi)) / 0.9 AS middle_psi
    FROM (
      SELECT audience, path, var_samp(size - course) - exp(-median(size)) AS psi
      FROM cell JOIN course USING (audience, week)
      GROUP BY audience, path
      HAVING min(n) > 0
    )
    GROUP BY audience
  ),

  usual AS (
    SELECT
      audience,
      judged.week,
      judged.n,
      count(*) AS k,
      median(cell.size - before.course) AS usual,
      exp(usual + any_value(course.course)) AS mu,
      var_samp(cell.size - before.course) - exp(-usual) AS psi
    FROM
      cell AS judged
      JOIN course USING (audience, week)
      CROSS JOIN range(1, 9) AS back (weeks)
      JOIN cell ON cell.is_own AND cell.audience = judged.audience AND cell.number = judged.number - back.weeks
      JOIN course AS before ON before.audience = cell.audience AND before.week = cell.week
    WHERE judged.is_own AND cell.week >= judged.week - 84
    GROUP BY audience, judged.week, judged.n
    HAVING k >= 3
  ),

  measured AS (
    SELECT
      *,
      sqrt((1 / mu + greatest(middle_psi, (8 * middle_psi + (k - 1) * psi) / (7 + k))) * (1 + 1.57 / k)) AS sigma
    FROM usual JOIN restless USING (audience)
  )

SELECT
  cell.week,
  cell.audience,
  cell.n::BIGINT AS views,
  if(mu IS NULL, NULL, greatest(0, mu * exp(-2 * sigma) - 0.5)) AS low,
  if(mu IS NULL, NULL, greatest(0, mu * exp(2 * sigma) - 0.5)) AS high
FROM cell LEFT JOIN measured USING (audience, week)
WHERE cell.is_own AND cell.week >= date_trunc('week', $from::DATE)::DATE
ORDER BY cell.week, cell.audience
