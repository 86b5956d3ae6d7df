-- Grain: one row per step that was ever at fault, its latest fault: since when, the words of the last run that was, and
-- the run that came to its end after it. A fault begins with a run that failed, or with the first that was put off
-- without a moment to go on when another was more than a day later, and none between them knew one. Runs that were
-- interrupted, or know when to go on, neither begin nor end one; those that seem to lie in the future come from a clock
-- that was wrong.
WITH
  stretches AS (
    SELECT
      *,
      outcome = 'later' AND resume_at IS NULL AS is_put_off,
      coalesce(sum(if(outcome = 'done', 1, 0)) OVER earlier, 0) AS ends,
      coalesce(sum(if(outcome = 'later' AND resume_at IS NOT NULL, 1, 0)) OVER earlier, 0) AS pauses
    FROM runs
    WHERE started_at <= $now::TIMESTAMP
    WINDOW earlier AS (PARTITION BY step ORDER BY started_at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
  ),
  first_put_off AS (
    SELECT *, min(if(is_put_off, started_at, NULL)) OVER (PARTITION BY step, ends, pauses) AS put_off_since
    FROM stretches
  ),
  at_fault AS (
    SELECT
      *,
      CASE
        WHEN outcome = 'failed' THEN started_at
        WHEN is_put_off AND started_at > put_off_since + INTERVAL 1 DAY THEN put_off_since
      END AS fault_since
    FROM first_put_off
  )
SELECT
  step,
  arg_max(summary, started_at) FILTER (fault_since IS NOT NULL) AS words,
  arg_min(fault_since, started_at) AS since,
  max(started_at) FILTER (outcome = 'done') AS over_at
FROM at_fault
GROUP BY step, ends
HAVING count(fault_since) > 0
QUALIFY ends = max(ends) OVER (PARTITION BY step)
ORDER BY step
