-- Grain: one row per step that ever had an outage, for its latest one: when it started, the summary
-- of its last unsuccessful run, and when the run that ended it started. An outage starts with a
-- failed run. It also starts with the first run paused without a resume time, if another such run
-- started more than a day later and no run between them had a resume time. Runs that were
-- interrupted, or that have a resume time, neither start nor end an outage. Runs dated in the future
-- come from a wrong clock, and are ignored.
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
  in_outage AS (
    SELECT
      *,
      CASE
        WHEN outcome = 'failed' THEN started_at
        WHEN is_put_off AND started_at > put_off_since + INTERVAL 1 DAY THEN put_off_since
      END AS outage_since
    FROM first_put_off
  )
SELECT
  step,
  arg_max(summary, started_at) FILTER (outage_since IS NOT NULL) AS words,
  arg_min(outage_since, started_at) AS since,
  max(started_at) FILTER (outcome = 'done') AS over_at
FROM in_outage
GROUP BY step, ends
HAVING count(outage_since) > 0
QUALIFY ends = max(ends) OVER (PARTITION BY step)
ORDER BY step
