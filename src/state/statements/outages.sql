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
      coalesce(sum(outcome = 'done') OVER earlier, 0) AS ends,
      coalesce(sum(outcome = 'later' AND resume_at IS NOT NULL) OVER earlier, 0) AS pauses
    FROM runs
    WHERE started_at <= $now
    WINDOW earlier AS (PARTITION BY step ORDER BY started_at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
  ),

  first_put_off AS (
    SELECT *, min(CASE WHEN is_put_off THEN started_at END) OVER (PARTITION BY step, ends, pauses) AS put_off_since
    FROM stretches
  ),

  in_outage AS (
    SELECT
      *,
      CASE
        WHEN outcome = 'failed' THEN started_at
        WHEN is_put_off AND julianday(started_at) > julianday(put_off_since) + 1 THEN put_off_since
      END AS outage_since
    FROM first_put_off
  ),

  described AS (
    SELECT
      step,
      ends,
      outage_since,
      first_value(summary) OVER (PARTITION BY step, ends ORDER BY outage_since IS NULL, started_at DESC) AS words,
      first_value(outage_since) OVER (PARTITION BY step, ends ORDER BY outage_since IS NULL, started_at) AS since,
      max(CASE WHEN outcome = 'done' THEN started_at END) OVER (PARTITION BY step, ends) AS over_at
    FROM in_outage
  ),

  latest AS (SELECT step, max(ends) AS ends FROM described WHERE outage_since IS NOT NULL GROUP BY step)
SELECT DISTINCT step, words, since, over_at
FROM described
JOIN latest USING (step, ends)
ORDER BY step
