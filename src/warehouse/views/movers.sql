-- Grain: one row per project, audience and page that moved in the seven days from `week_start`,
-- largest change first. Only fully loaded weeks are used. The model, on a log scale: a page's views
-- are its usual level, plus the trend of the site's median page, plus noise.
CREATE OR REPLACE MACRO movers(week_start) AS TABLE
WITH
  -- This week (0) and up to eight full weeks out of the twelve before it. Empty if this week is not
  -- fully loaded.
  site_week AS (
    SELECT project, (week_start::DATE - day + 6) // 7 AS weeks_ago
    FROM site_days
    WHERE
      day BETWEEN week_start::DATE - 84 AND week_start::DATE + 6
      AND (
        SELECT
          CASE id
            WHEN '{file}' THEN true
            ELSE error('movers reads the current database, which is not the one it belongs to: run USE with the attached database first, then FROM movers(…)')
          END
        FROM this_file
      )
    GROUP BY project, weeks_ago
    HAVING count(*) = 7
    QUALIFY
      row_number() OVER (PARTITION BY project ORDER BY weeks_ago) <= 9
      AND min(weeks_ago) OVER (PARTITION BY project) = 0
  ),

  page_week AS (
    SELECT
      project,
      path,
      (week_start::DATE - day + 6) // 7 AS weeks_ago,
      sum(human)::DOUBLE AS human,
      sum(ai)::DOUBLE AS ai,
      count(*) FILTER (human > 0) AS human_days,
      count(*) FILTER (ai > 0) AS ai_days
    FROM page_views
    WHERE day BETWEEN week_start::DATE - 84 AND week_start::DATE + 6
    GROUP BY ALL
  ),

  -- A page counts from the week it was first seen. Smaller pages, which are most of them, cannot be
  -- listed, and neither can pages without views in more than half of their weeks, unless they have
  -- some now.
  page AS (
    SELECT project, path, max(weeks_ago) AS first_seen
    FROM page_week LEFT JOIN (SELECT *, true AS is_used FROM site_week) USING (project, weeks_ago)
    GROUP BY project, path
    HAVING
      max(greatest(human, ai)) >= 8
      AND (
        max(greatest(human, ai)) FILTER (weeks_ago = 0) >= 8
        OR 2 * count(*) FILTER (is_used AND weeks_ago > 0) >= (
          SELECT count(*)
          FROM site_week
          WHERE site_week.project = page_week.project AND weeks_ago BETWEEN 1 AND max(page_week.weeks_ago)
        )
      )
  ),

  -- One row per audience, page and week, including weeks with no views.
  cell AS MATERIALIZED (
    SELECT
      project,
      audience,
      path,
      weeks_ago,
      coalesce(if(audience = 'human', human, ai), 0) AS n,
      coalesce(if(audience = 'human', human_days, ai_days), 0) AS days,
      ln(n + 0.5) AS size
    FROM
      page
      JOIN site_week USING (project)
      LEFT JOIN page_week USING (project, path, weeks_ago)
      CROSS JOIN (VALUES ('human'), ('ai')) AS audiences (audience)
    WHERE weeks_ago <= first_seen
  ),

  -- Only pages viewed in every week set the trend, so pages that vanish do not affect it.
  level AS (
    SELECT
      project,
      audience,
      path,
      median(size) FILTER (weeks_ago > 0) AS middle,
      middle >= ln(8) AND min(n) > 0 AS is_steady
    FROM cell
    GROUP BY ALL
  ),

  -- A median, so that spam on one page does not make all others appear to fall.
  trend AS MATERIALIZED (
    SELECT project, audience, weeks_ago, median(size - middle) AS trend
    FROM cell JOIN level USING (project, audience, path)
    WHERE is_steady
    GROUP BY ALL
  ),

  -- The page's usual level relative to the trend, and the variance around it beyond chance.
  usual AS (
    SELECT
      project,
      audience,
      path,
      is_steady,
      max(n) FILTER (weeks_ago = 0) AS n,
      max(days) FILTER (weeks_ago = 0) AS days_active,
      count(*) FILTER (weeks_ago > 0) AS k,
      median(size - trend) FILTER (weeks_ago > 0) AS usual,
      max(size - trend) FILTER (weeks_ago = 0) - usual AS deviation,
      arg_min(size - trend, weeks_ago) FILTER (weeks_ago > 0) - usual AS deviation_before,
      exp(usual + max(trend) FILTER (weeks_ago = 0)) AS mu,
      (sum((size - trend) ^ 2) FILTER (weeks_ago > 0)
      - 2 * usual * sum(size - trend) FILTER (weeks_ago > 0)
      + k * usual ^ 2) / (k - 1)
      - exp(-usual) AS psi
    FROM cell JOIN trend USING (project, audience, weeks_ago) JOIN level USING (project, audience, path)
    GROUP BY project, audience, path, is_steady
    HAVING k >= 3
  ),

  -- A few weeks say little about a page's variance, so the median variance counts as eight more
  -- weeks, and is also the minimum.
  measured AS (
    SELECT
      *,
      greatest(0, median(psi) FILTER (is_steady) OVER (PARTITION BY project, audience)) / 0.9 AS median_psi,
      sqrt((1 / mu + greatest(median_psi, (8 * median_psi + (k - 1) * psi) / (7 + k))) * (1 + 1.57 / k)) AS sigma
    FROM usual
    WHERE greatest(n, mu) >= 20
  ),

  -- In a volatile week, all pages deviate more than their earlier weeks suggest. `z` follows a
  -- normal distribution if nothing moved.
  judged AS (
    SELECT
      *,
      sigma * greatest(1, median(abs(deviation) / sigma) FILTER (is_steady) OVER (PARTITION BY project, audience) / 0.69) AS spread,
      sign(deviation) * sqrt((7 + k) * ln(1 + (deviation / spread) ^ 2 / (7 + k))) AS z
    FROM measured
  ),

  ranked AS (
    SELECT
      *,
      count(*) OVER (PARTITION BY project) AS pages,
      row_number() OVER (PARTITION BY project ORDER BY abs(z) DESC, path, audience) AS place
    FROM judged
  ),

  trends AS (
    SELECT
      project,
      audience,
      list({week: this_week - 7 * weeks_ago::INTEGER, trend: trend} ORDER BY weeks_ago DESC) AS trends
    FROM trend, (SELECT week_start::DATE AS this_week)
    GROUP BY ALL
  )

SELECT
  project,
  audience,
  path,
  n::BIGINT AS views,
  greatest(0, mu - 0.5) AS expected,
  greatest(0, mu * exp(-2 * spread) - 0.5) AS expected_low,
  mu * exp(2 * spread) - 0.5 AS expected_high,
  z,
  k AS weeks_seen,
  days_active,
  list_transform(
    trends,
    lambda past: {
      week: past.week,
      low: greatest(0, exp(usual + past.trend - 2 * spread) - 0.5),
      high: exp(usual + past.trend + 2 * spread) - 0.5
    }
  ) AS expected_weeks
FROM ranked JOIN trends USING (project, audience)
-- Pages are listed for as long as they deviate more than chance explains in so many pages.
QUALIFY
  bool_and(z ^ 2 >= 2 * ln(1.5 * pages / least(place, 10))) OVER (PARTITION BY project ORDER BY place)
  AND abs(deviation) >= ln(1.25)
  -- A page that had already moved the week before is not listed again.
  AND sign(deviation) * deviation_before <= abs(deviation) / 2
  -- A rise must span several days; a page that disappears has no active days.
  AND (deviation < 0 OR days_active >= 3)
ORDER BY project, abs(views - expected) DESC, path, audience;

COMMENT ON MACRO TABLE movers IS 'Pages whose views in the seven days from the given one differ from the expected number by more than chance explains, given how many pages are compared. One row per project, audience (human or ai) and page that moved, largest change in views first: FROM movers(''2026-11-09''). Only fully loaded weeks are used, and a page needs at least three earlier ones. A page is listed for the week in which it moves, not for the weeks after. views is the count for the seven days. expected is the page''s usual number of views over the weeks_seen full weeks before (at most 8), adjusted by the trend of the site''s median page. 95% of the weeks of such a page lie between expected_low and expected_high; expected_weeks has that range for each full week used, oldest first. z is the difference in standard deviations, estimated from the page''s own weeks, those of the median page, and chance. Changes under 25%, pages under 20 views and increases seen on fewer than three days (days_active) are left out.';
