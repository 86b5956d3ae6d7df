-- Grain: one row per project, audience and basis with at least one pair.
CREATE OR REPLACE VIEW experiment_effect AS
WITH
  difference AS (
    SELECT project, pair, basis, audience, ln(ratio) AS d
    FROM
      (UNPIVOT experiments ON human_ratio AS 'human', ai_ratio AS 'ai' INTO NAME audience VALUE ratio)
      JOIN (VALUES ('assigned'), ('merged')) AS bases (basis) ON basis = 'assigned' OR outcome = 'merged'
  ),

  -- The interval of the signed-rank test: it contains each effect that the test does not reject. The
  -- test counts the ways in which chance could have drawn the pages of each pair, so it is right
  -- whatever the noise is, and however the pages were selected. The critical rank sum is the exact
  -- one or the next smaller one, for 8 to 300 pairs.
  average AS (
    SELECT one.project, one.audience, one.basis, list((one.d + two.d) / 2 ORDER BY one.d + two.d) AS averages
    FROM
      difference AS one
      JOIN difference AS two
        ON two.project = one.project AND two.audience = one.audience AND two.basis = one.basis AND two.pair <= one.pair
    GROUP BY ALL
  ),

  tested AS (
    SELECT
      project,
      audience,
      basis,
      count(*) AS pairs,
      floor(pairs * (pairs + 1) / 4 - 1.96 * sqrt(pairs * (pairs + 1) * (2 * pairs + 1) / 24) - 0.25)::INTEGER AS critical
    FROM difference
    GROUP BY ALL
  )

SELECT
  all_bases.project,
  all_bases.audience,
  all_bases.basis,
  coalesce(pairs, 0) AS pairs,
  exp(list_median) AS ratio,
  exp(if(pairs >= 8, averages[critical + 1], NULL)) AS low,
  exp(if(pairs >= 8, averages[-critical - 1], NULL)) AS high,
  CASE
    WHEN coalesce(pairs, 0) < 8 THEN 'too early'
    WHEN low > 1 THEN 'more views'
    WHEN high < 1 THEN 'fewer views'
    ELSE 'no clear change'
  END AS verdict
FROM
  (
    SELECT DISTINCT project, audience, basis
    FROM
      experiment_pairs
      CROSS JOIN (VALUES ('human'), ('ai')) AS audiences (audience)
      CROSS JOIN (VALUES ('assigned'), ('merged')) AS bases (basis)
  ) AS all_bases
  LEFT JOIN tested USING (project, audience, basis)
  LEFT JOIN (SELECT *, list_aggregate(averages, 'median') AS list_median FROM average) AS average USING (project, audience, basis);

COMMENT ON VIEW experiment_effect IS 'The effect of agent jobs on views, measured on pages that chance chose. One row per project, audience (human or ai) and basis. It may be called an effect, whatever the noise is and however the pages were selected.';
COMMENT ON COLUMN experiment_effect.project IS 'Project id on the platform';
COMMENT ON COLUMN experiment_effect.audience IS 'human or ai';
COMMENT ON COLUMN experiment_effect.basis IS 'assigned: all measured pairs, whatever became of the job, which chance decided; merged: only those with a merged pull request, which is not decided by chance alone';
COMMENT ON COLUMN experiment_effect.pairs IS 'Number of measured pairs with enough views; at least 8 are needed';
COMMENT ON COLUMN experiment_effect.ratio IS 'Median ratio of the growth of the pages with a job to that of their twins (Hodges-Lehmann): 1.14 means 14% more views. NULL without pairs';
COMMENT ON COLUMN experiment_effect.low IS 'Lower bound of its 95% confidence interval, by a signed-rank test; NULL with fewer than 8 pairs';
COMMENT ON COLUMN experiment_effect.high IS 'Upper bound of its 95% confidence interval; NULL with fewer than 8 pairs';
COMMENT ON COLUMN experiment_effect.verdict IS 'more views, fewer views or no clear change; too early with fewer than 8 pairs';
