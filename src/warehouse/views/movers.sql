-- Grain: one row per project, audience and page that moved in the seven days from `week_start`,
-- largest change first. Only fully loaded weeks are used. On a log scale, a page's views are taken
-- to be its usual level plus the course of the site, which the middle page sets, plus noise.
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
            ELSE error('movers reads the database in use, which is another: USE the attached one first, then FROM movers(…)')
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

  -- A page counts from the week it was first seen. Smaller pages cannot be listed, and most pages
  -- are smaller.
  page AS (
    SELECT project, path, max(weeks_ago) AS first_seen
    FROM page_week
    GROUP BY project, path
    HAVING max(greatest(human, ai)) >= 8
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

  -- The middle page: one that was viewed in every week, so that pages that vanish do not set it.
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

  -- Half of the pages may do anything without changing the course, so one page that is spammed
  -- does not make all others fall.
  course AS MATERIALIZED (
    SELECT project, audience, weeks_ago, median(size - middle) AS course
    FROM cell JOIN level USING (project, audience, path)
    WHERE is_steady
    GROUP BY ALL
  ),

  -- The page's usual size beside the course, and the variance around it beyond that of chance.
  usual AS (
    SELECT
      project,
      audience,
      path,
      is_steady,
      max(n) FILTER (weeks_ago = 0) AS n,
      max(days) FILTER (weeks_ago = 0) AS days_active,
      count(*) FILTER (weeks_ago > 0) AS k,
      median(size - course) FILTER (weeks_ago > 0) AS usual,
      max(size - course) FILTER (weeks_ago = 0) - usual AS stray,
      arg_min(size - course, weeks_ago) FILTER (weeks_ago > 0) - usual AS stray_before,
      exp(usual + max(course) FILTER (weeks_ago = 0)) AS mu,
      (sum((size - course) ^ 2) FILTER (weeks_ago > 0)
      - 2 * usual * sum(size - course) FILTER (weeks_ago > 0)
      + k * usual ^ 2) / (k - 1)
      - exp(-usual) AS psi
    FROM cell JOIN course USING (project, audience, weeks_ago) JOIN level USING (project, audience, path)
    GROUP BY project, audience, path, is_steady
    HAVING k >= 3
  ),

  -- The few weeks of one page say little about its variance, so the middle page's counts as eight
  -- more, and is the least.
  measured AS (
    SELECT
      *,
      greatest(0, median(psi) FILTER (is_steady) OVER (PARTITION BY project, audience)) / 0.9 AS middle_psi,
      sqrt((1 / mu + greatest(middle_psi, (8 * middle_psi + (k - 1) * psi) / (7 + k))) * (1 + 1.57 / k)) AS sigma
    FROM usual
    WHERE greatest(n, mu) >= 20
  ),

  -- In a restless week, all pages stray further than their earlier weeks say. `z` is normal if
  -- nothing moved.
  judged AS (
    SELECT
      *,
      sigma * greatest(1, median(abs(stray) / sigma) FILTER (is_steady) OVER (PARTITION BY project, audience) / 0.69) AS spread,
      sign(stray) * sqrt((7 + k) * ln(1 + (stray / spread) ^ 2 / (7 + k))) AS z
    FROM measured
  ),

  ranked AS (
    SELECT
      *,
      count(*) OVER (PARTITION BY project) AS pages,
      row_number() OVER (PARTITION BY project ORDER BY abs(z) DESC, path, audience) AS place
    FROM judged
  ),

  courses AS (
    SELECT
      project,
      audience,
      list({week: this_week - 7 * weeks_ago::INTEGER, course: course} ORDER BY weeks_ago DESC) AS courses
    FROM course, (SELECT week_start::DATE AS this_week)
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
    courses,
    lambda past: {
      week: past.week,
      low: greatest(0, exp(usual + past.course - 2 * spread) - 0.5),
      high: exp(usual + past.course + 2 * spread) - 0.5
    }
  ) AS expected_weeks
FROM ranked JOIN courses USING (project, audience)
-- Down the list while a page is further off than chance takes the furthest of so many.
QUALIFY
  bool_and(z ^ 2 >= 2 * ln(1.5 * pages / least(place, 10))) OVER (PARTITION BY project ORDER BY place)
  AND abs(stray) >= ln(1.25)
  -- A page that had already moved the week before is not listed again.
  AND sign(stray) * stray_before <= abs(stray) / 2
  -- A rise must span several days; a page that disappears has no active days.
  AND (stray < 0 OR days_active >= 3)
ORDER BY project, abs(views - expected) DESC, path, audience;

COMMENT ON MACRO TABLE movers IS 'Pages that moved: beside their last eight full weeks and the course of the middle page, they are further off in the seven days from the given one than chance takes the furthest of so many pages. One row per project, audience (human or ai) and page that moved, largest change in views first: FROM movers(''2026-11-09''). Only fully loaded weeks are used, and a page needs three before; it is listed for the week in which it moves, not again for those after. views is the count for the seven days. expected is the page''s usual size, from the weeks_seen full weeks before (8 at most), times what the middle page of the site did that week; nineteen of twenty weeks of such a page lie between expected_low and expected_high, and expected_weeks has that range for each full week used, oldest first. z is the distance in standard deviations: the noise of the page''s own weeks, that of the middle page, and chance. Changes under 25%, pages under 20 views and rises on fewer than three days (days_active) are left out.';
