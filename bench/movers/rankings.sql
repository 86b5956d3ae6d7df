-- Grain: one row per ranking, audience and page, for the top ten of each ranking.
WITH
  change AS (
    SELECT
      audience,
      path,
      coalesce(sum(views) FILTER (day >= $week_start::DATE), 0)::DOUBLE AS n,
      coalesce(sum(views) FILTER (day < $week_start::DATE), 0)::DOUBLE AS n_before
    FROM (UNPIVOT page_views ON human, ai INTO NAME audience VALUE views)
    WHERE day >= $week_start::DATE - 7
    GROUP BY ALL
  ),

  ranked AS (
    SELECT 'movers' AS way, audience, path, abs(views - expected) AS score FROM movers($week_start)
    UNION ALL
    SELECT 'percent change', audience, path, abs(n / n_before - 1) FROM change WHERE n_before > 0
    UNION ALL
    SELECT 'absolute change', audience, path, abs(n - n_before) FROM change
    UNION ALL
    SELECT 'Poisson z', audience, path, abs(n - n_before) / sqrt(greatest(n_before, 1)) FROM change
  )

SELECT way, audience || ' ' || path AS mover
FROM ranked
QUALIFY row_number() OVER (PARTITION BY way ORDER BY score DESC, path, audience) <= 10
