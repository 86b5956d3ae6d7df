-- Grain: one row per step: its latest run, the start of its latest successful run, and the number
-- of runs since then that failed or were paused without a resume time. Runs dated in the future
-- come from a wrong clock, and are ignored.
WITH
  past AS (
    SELECT *, max(started_at) FILTER (outcome = 'done') OVER (PARTITION BY step) AS last_done_at
    FROM runs
    WHERE started_at <= $now::TIMESTAMP
  )
SELECT
  step,
  max(started_at) AS started_at,
  arg_max(outcome, started_at) AS outcome,
  arg_max_null(resume_at, started_at) AS resume_at,
  arg_max_null(summary, started_at) AS summary,
  any_value(last_done_at) AS done_at,
  count(*) FILTER (
    (outcome = 'failed' OR (outcome = 'later' AND resume_at IS NULL))
    AND (last_done_at IS NULL OR started_at > last_done_at)
  ) AS failures
FROM past
GROUP BY step
ORDER BY step
