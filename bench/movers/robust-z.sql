-- Grain: one row per project, audience and page whose change of the week is far outside its usual
-- changes: what a careful analyst would write first. The page is compared with the median of its
-- share of the typical page, in units of the median distance from it.
CREATE OR REPLACE MACRO robust_z(week_start) AS TABLE
WITH
  cell AS (
    SELECT project, audience, path, (week_start::DATE - day + 6) // 7 AS weeks_ago, sum(views) AS n
    FROM (UNPIVOT page_views ON human, ai INTO NAME audience VALUE views)
    WHERE day BETWEEN week_start::DATE - 56 AND week_start::DATE + 6
    GROUP BY ALL
  ),
  beside AS (
    SELECT *, ln(n + 0.5) - median(ln(n + 0.5)) OVER (PARTITION BY project, audience, weeks_ago) AS size
    FROM cell
  ),
  placed AS (
    SELECT
      project,
      audience,
      path,
      max(n) FILTER (weeks_ago = 0) AS n,
      median(n) FILTER (weeks_ago > 0) AS usual,
      max(size) FILTER (weeks_ago = 0) AS now,
      median(size) FILTER (weeks_ago > 0) AS middle,
      1.4826 * mad(size) FILTER (weeks_ago > 0) AS spread
    FROM beside
    GROUP BY ALL
  )
SELECT project, audience, path, (now - middle) / greatest(spread, 0.05) AS z
FROM placed
WHERE greatest(n, usual) >= 20 AND abs(z) >= 3.5 AND abs(now - middle) >= ln(1.25)
