-- Grain: one row per step that ever failed, its latest fault: since when it failed in a row, the words of the last
-- failure, and the run that came to its end after it. Runs that were interrupted or put off neither begin nor end one.
WITH
  last_failures AS (
    SELECT step, max(started_at) AS failed_at, arg_max(summary, started_at) AS words
    FROM runs
    WHERE outcome = 'failed'
    GROUP BY step
  ),
  done_before AS (
    SELECT step, max(started_at) AS done_at
    FROM runs
    JOIN last_failures USING (step)
    WHERE outcome = 'done' AND started_at < failed_at
    GROUP BY step
  )
SELECT
  step,
  any_value(words) AS words,
  min(started_at) FILTER (outcome = 'failed' AND (done_at IS NULL OR started_at > done_at)) AS since,
  min(started_at) FILTER (outcome = 'done' AND started_at > failed_at) AS over_at
FROM runs
JOIN last_failures USING (step)
LEFT JOIN done_before USING (step)
GROUP BY step
ORDER BY step
