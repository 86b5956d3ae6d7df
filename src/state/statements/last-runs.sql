-- Grain: one row per step: its latest run, the start of its latest successful run, and the number of runs since then
-- that failed or were paused without a resume time. Runs dated in the future come from a wrong clock, and are ignored.
WITH
  past AS (
    SELECT *, max(CASE WHEN outcome = 'done' THEN started_at END) OVER (PARTITION BY step) AS last_done_at
    FROM runs
    WHERE started_at <= $now
  )
SELECT
  step,
  -- SQLite takes the other columns from the row with this value.
  max(started_at) AS started_at,
  outcome,
  resume_at,
  summary,
  last_done_at AS done_at,
  count(*) FILTER (
    WHERE
      (outcome = 'failed' OR (outcome = 'later' AND resume_at IS NULL))
      AND (last_done_at IS NULL OR started_at > last_done_at)
  ) AS failures
FROM past
GROUP BY step
ORDER BY step
