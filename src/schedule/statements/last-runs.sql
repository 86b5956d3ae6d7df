-- Grain: one row per step, its latest run, and when the latest that came to its end began. Runs that seem to lie in the
-- future come from a clock that was wrong.
SELECT
  step,
  max(started_at) AS started_at,
  arg_max(outcome, started_at) AS outcome,
  arg_max_null(resume_at, started_at) AS resume_at,
  arg_max_null(summary, started_at) AS summary,
  max(started_at) FILTER (outcome = 'done') AS done_at
FROM runs
WHERE started_at <= $now::TIMESTAMP
GROUP BY step
ORDER BY step
