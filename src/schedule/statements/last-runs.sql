-- Grain: one row per step, its latest run, when the latest that came to its end began, and how many since then failed or
-- could not say when to go on. Runs that seem to lie in the future come from a clock that was wrong.
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
