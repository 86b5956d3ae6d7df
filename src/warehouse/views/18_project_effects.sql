-- Grain: one row per project and audience with a merged pull request whose effect can be measured.
CREATE OR REPLACE VIEW project_effects AS
WITH
  together AS (
    SELECT
      project,
      audience,
      count(*) AS changes,
      median(ratio) AS ratio,
      -- A sign test: if ratios are as likely to be above the truth as below it, the true median
      -- lies between these two in 95% of cases.
      floor((changes + 1) / 2 - 0.98 * sqrt(changes))::INTEGER AS place,
      list(ratio ORDER BY ratio) AS ratios
    FROM job_effects
    WHERE ratio IS NOT NULL AND job > 0
    GROUP BY ALL
  )
SELECT
  project,
  audience,
  changes,
  ratio,
  if(place < 1, NULL, ratios[place]) AS low,
  if(place < 1, NULL, ratios[-place]) AS high,
  CASE
    WHEN place < 1 THEN 'cannot tell'
    WHEN low > 1 THEN 'more views'
    WHEN high < 1 THEN 'fewer views'
    ELSE 'no clear change'
  END AS verdict
FROM together;

COMMENT ON VIEW project_effects IS 'The effects of all merged pull requests of a project combined, which can show an effect too small to see on a single page. One row per project and audience (human or ai) with at least one measured change.';
COMMENT ON COLUMN project_effects.project IS 'Project id on the platform';
COMMENT ON COLUMN project_effects.audience IS 'human or ai';
COMMENT ON COLUMN project_effects.changes IS 'Number of measured changes: rows of job_effects that have a ratio';
COMMENT ON COLUMN project_effects.ratio IS 'Median of their ratios: 1.1 means that half of the changed pages grew at least 10% more than similar pages';
COMMENT ON COLUMN project_effects.low IS 'Lower bound of the 95% confidence interval of ratio, by a sign test; NULL with fewer than 6 changes';
COMMENT ON COLUMN project_effects.high IS 'Upper bound of the 95% confidence interval of ratio; NULL with fewer than 6 changes';
COMMENT ON COLUMN project_effects.verdict IS 'more views, fewer views or no clear change; cannot tell with fewer than 6 changes';
