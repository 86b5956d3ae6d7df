-- Grain: one row per project, audience and page whose views are far from what its earlier weeks and
-- the site's growth predict, furthest first. The week is the seven days from `week_start`. Only
-- fully loaded weeks are used.
CREATE OR REPLACE MACRO movers_0_1_0(week_start) AS TABLE
WITH
  -- This week (0) and up to eight full weeks out of the twelve before it, going back no further
  -- than the first week with views. Empty if this week is not fully loaded.
  site_week AS (
    SELECT project, (week_start::DATE - day + 6) // 7 AS weeks_ago, sum(human) AS human, sum(ai) AS ai
    FROM site_days
    WHERE day BETWEEN week_start::DATE - 84 AND week_start::DATE + 6
    GROUP BY project, weeks_ago
    HAVING count(*) = 7
    QUALIFY
      row_number() OVER (PARTITION BY project ORDER BY weeks_ago) <= 9
      AND min(weeks_ago) OVER (PARTITION BY project) = 0
      AND weeks_ago <= max(weeks_ago) FILTER (sum(human + ai) > 0) OVER (PARTITION BY project)
  ),

  site AS (
    SELECT
      project,
      count(*) > 4 AS history_suffices,
      max(human) FILTER (weeks_ago = 0) / min(nullif(human, 0)) AS human_growth,
      max(ai) FILTER (weeks_ago = 0) / min(nullif(ai, 0)) AS ai_growth
    FROM site_week
    GROUP BY project
  ),

  page_week AS (
    SELECT
      project,
      path,
      (week_start::DATE - day + 6) // 7 AS weeks_ago,
      sum(human) AS human,
      sum(ai) AS ai,
      count(*) FILTER (human > 0) AS human_days,
      count(*) FILTER (ai > 0) AS ai_days
    FROM page_views
    WHERE day BETWEEN week_start::DATE - 84 AND week_start::DATE + 6
    GROUP BY ALL
  ),

  -- A page counts from the week it was first seen: before that it had no share of the site, rather
  -- than a share of zero. Pages that cannot have, or be expected to have, more than 5 views are
  -- left out for speed, since most pages are that small.
  page AS (
    SELECT project, path, max(weeks_ago) AS first_seen
    FROM page_week JOIN site USING (project)
    GROUP BY project, path, human_growth, ai_growth
    HAVING max(greatest(human, ai)) * greatest(1, human_growth, ai_growth) > 5
  ),

  -- One row per audience, page and week, including weeks with no views.
  cell AS (
    SELECT
      project,
      audience,
      path,
      weeks_ago,
      if(audience = 'human', site_week.human, site_week.ai)::DOUBLE AS site_views,
      coalesce(if(audience = 'human', page_week.human, page_week.ai), 0)::DOUBLE AS n,
      coalesce(if(audience = 'human', human_days, ai_days), 0) AS days_active
    FROM
      page
      JOIN site_week USING (project)
      LEFT JOIN page_week USING (project, path, weeks_ago)
      CROSS JOIN (VALUES ('human'), ('ai')) AS audiences (audience)
    WHERE weeks_ago <= first_seen
  ),

  shared AS (
    SELECT
      *,
      median(n / nullif(site_views, 0)) FILTER (weeks_ago > 0) OVER (PARTITION BY project, audience, path) AS usual_share
    FROM cell
  ),

  -- Expected views are the page's usual share of the site's views, or its views the week before if
  -- there are fewer than four earlier weeks.
  measured AS (
    SELECT
      project,
      audience,
      path,
      count(*) FILTER (weeks_ago > 0) AS weeks_seen,
      max(n) FILTER (weeks_ago = 0) AS n,
      max(days_active) FILTER (weeks_ago = 0) AS days_active,
      max(usual_share * site_views) FILTER (weeks_ago = 0) AS mu,
      max(n) FILTER (weeks_ago = 1) AS n_before,
      median((n - usual_share * site_views) ^ 2 / nullif(usual_share * site_views, 0)) FILTER (weeks_ago > 0)
      / 0.455 AS page_dispersion
    FROM shared
    GROUP BY ALL
  ),

  pooled AS (
    SELECT
      *,
      median(page_dispersion) FILTER (mu > 5 AND weeks_seen >= 4) OVER (PARTITION BY project, audience) AS pool_dispersion
    FROM measured JOIN site USING (project)
  ),

  judged AS (
    SELECT
      *,
      if(history_suffices, mu, n_before) AS expected,
      greatest(
        1,
        (7 * coalesce(page_dispersion, pool_dispersion, 1) + 8 * coalesce(pool_dispersion, page_dispersion, 1)) / 15
      ) AS dispersion,
      if(history_suffices, (n - mu) / sqrt(dispersion * greatest(mu, 1) * 1.125), NULL) AS z
    FROM pooled
  )

SELECT
  project,
  audience,
  path,
  n::BIGINT AS views,
  expected,
  if(history_suffices, 'earlier weeks', 'the week before') AS compared_with,
  z,
  dispersion,
  weeks_seen,
  days_active
FROM judged
WHERE
  abs(ln((n + 10) / (expected + 10))) >= ln(1.25)
  AND greatest(n, expected) >= 20
  -- A rise must span several days; a page that disappears has no active days.
  AND (n < expected OR days_active >= 3)
  AND (NOT history_suffices OR (abs(z) >= 3 AND weeks_seen >= 4))
ORDER BY project, abs(n - expected) DESC, path, audience;

