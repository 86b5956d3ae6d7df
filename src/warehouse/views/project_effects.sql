-- Grain: one row per project and audience with a merged pull request whose effect can be measured.
CREATE OR REPLACE VIEW project_effects AS
WITH
  together AS (
    SELECT
      project,
      audience,
      count(*) AS changes,
      median(ratio) AS ratio,
      -- Of values that are as often above as below the truth, the median of the truth lies between
      -- these in nineteen of twenty cases: a sign test.
      floor((changes + 1) / 2 - 0.98 * sqrt(changes))::INTEGER AS place,
      list(ratio ORDER BY ratio) AS ratios
    FROM job_effects
    WHERE ratio IS NOT NULL
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
    WHEN low > 1 THEN 'more read'
    WHEN high < 1 THEN 'less read'
    ELSE 'no clear change'
  END AS verdict
FROM together;

COMMENT ON VIEW project_effects IS 'What followed all merged pull requests of a project taken together, which tells a small effect that no single page can. One row per project and audience (human or ai) with a change whose effect can be measured.';
COMMENT ON COLUMN project_effects.project IS 'Project id on the platform';
COMMENT ON COLUMN project_effects.audience IS 'human or ai';
COMMENT ON COLUMN project_effects.changes IS 'Number of measured changes: rows of job_effects that have a ratio';
COMMENT ON COLUMN project_effects.ratio IS 'Median of their ratios: 1.1 means that half of the changed pages did at least 10% better than pages like them';
COMMENT ON COLUMN project_effects.low IS 'Lowest true median that fits, by a sign test: it is this low or lower for only one of forty; NULL with fewer than 6 changes';
COMMENT ON COLUMN project_effects.high IS 'Highest true median that fits; see low';
COMMENT ON COLUMN project_effects.verdict IS 'more read, less read, no clear change, or cannot tell with fewer than 6 changes';
