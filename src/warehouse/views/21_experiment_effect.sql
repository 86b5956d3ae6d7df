-- Grain: one row per project and audience with at least one pair.
CREATE OR REPLACE VIEW experiment_effect AS
WITH
  difference AS (
    SELECT project, pair, audience, ln(ratio) AS d
    FROM (UNPIVOT experiments ON human_ratio AS 'human', ai_ratio AS 'ai' INTO NAME audience VALUE ratio)
  ),

  -- The interval of the signed-rank test: it contains each effect that the test does not reject. The
  -- test counts the ways in which chance could have drawn the pages of each pair, so it is right
  -- whatever the noise is, and however the pages were selected. The critical rank sum is the exact
  -- one or the next smaller one, for 8 to 300 pairs.
  average AS (
    SELECT one.project, one.audience, list((one.d + two.d) / 2 ORDER BY one.d + two.d) AS averages
    FROM
      difference AS one
      JOIN difference AS two
        ON two.project = one.project AND two.audience = one.audience AND two.pair <= one.pair
    GROUP BY ALL
  ),

  tested AS (
    SELECT
      project,
      audience,
      count(*) AS pairs,
      floor(pairs * (pairs + 1) / 4 - 1.96 * sqrt(pairs * (pairs + 1) * (2 * pairs + 1) / 24) - 0.25)::INTEGER AS critical
    FROM difference
    GROUP BY ALL
  )

SELECT
  drawn.project,
  audience,
  coalesce(pairs, 0) AS pairs,
  exp(list_aggregate(averages, 'median')) AS ratio,
  exp(if(pairs >= 8, averages[critical + 1], NULL)) AS low,
  exp(if(pairs >= 8, averages[-critical - 1], NULL)) AS high,
  CASE
    WHEN coalesce(pairs, 0) < 8 THEN 'too early'
    WHEN low > 1 THEN 'more views'
    WHEN high < 1 THEN 'fewer views'
    ELSE 'no clear change'
  END AS verdict
FROM
  (SELECT DISTINCT project FROM experiment_pairs) AS drawn
  CROSS JOIN (VALUES ('human'), ('ai')) AS audiences (audience)
  LEFT JOIN tested USING (project, audience)
  LEFT JOIN average USING (project, audience);

COMMENT ON VIEW experiment_effect IS 'The effect of agent jobs on views, measured on the pairs of experiments; every measured pair counts, whatever became of its job. One row per project and audience (human or ai).';
COMMENT ON COLUMN experiment_effect.project IS 'Project id on the platform';
COMMENT ON COLUMN experiment_effect.audience IS 'human or ai';
COMMENT ON COLUMN experiment_effect.pairs IS 'Number of measured pairs with enough views; at least 8 are needed';
COMMENT ON COLUMN experiment_effect.ratio IS 'Median ratio of the growth of the pages with a job to that of their twins (Hodges-Lehmann): 1.14 means 14% more views. NULL without pairs';
COMMENT ON COLUMN experiment_effect.low IS 'Lower bound of its 95% confidence interval, by a signed-rank test; NULL with fewer than 8 pairs';
COMMENT ON COLUMN experiment_effect.high IS 'Upper bound of its 95% confidence interval; NULL with fewer than 8 pairs';
COMMENT ON COLUMN experiment_effect.verdict IS 'more views, fewer views or no clear change; too early with fewer than 8 pairs';
