-- Grain: one row per kind of record of which some are dated more than an hour in the future, with the furthest time.
WITH
  dated (kind, moment) AS (
    SELECT 'step', greatest(started_at, ended_at) FROM runs
    UNION ALL SELECT 'day', greatest(attempted_at, loaded_at, day) FROM day_loads
    UNION ALL SELECT 'job', greatest(planned_at, submitted_at, ended_at, merged_on) FROM agent_jobs
    UNION ALL SELECT 'message', greatest(planned_at, submitted_at) FROM agent_messages
    UNION ALL SELECT 'email or post', greatest(tried_at, settled_at) FROM deliveries
    UNION ALL SELECT 'pause', paused_at FROM agent_pauses
    UNION ALL SELECT 'restatement', restated_at FROM restatements
    UNION ALL SELECT 'skipped page', skipped_at FROM page_skips
    UNION ALL SELECT 'pull request', greatest(checked_at, closed_on) FROM pull_requests
  )
SELECT kind, count(*) AS rows, max(moment) AS latest
FROM dated
WHERE moment > $now::TIMESTAMP + INTERVAL 1 HOUR
GROUP BY kind
ORDER BY kind
