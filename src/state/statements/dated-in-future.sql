-- Grain: one row per kind of record of which some are dated after $since, with the furthest time.
WITH
  dated (kind, moment) AS (
    SELECT 'step', max(started_at, coalesce(ended_at, '')) FROM runs
    UNION ALL SELECT 'job', max(planned_at, coalesce(submitted_at, ''), coalesce(ended_at, ''), coalesce(merged_on, '')) FROM jobs
    UNION ALL SELECT 'message', max(planned_at, coalesce(submitted_at, '')) FROM messages
    UNION ALL SELECT 'email or post', max(tried_at, coalesce(settled_at, '')) FROM emails
    UNION ALL SELECT 'pause', paused_at FROM prompt_pauses
    UNION ALL SELECT 'skipped page', skipped_at FROM skips
    UNION ALL SELECT 'pull request', max(checked_at, coalesce(closed_on, '')) FROM pull_requests
    UNION ALL SELECT 'record of requests', minute FROM requests
    UNION ALL SELECT 'refusal of requests', refused_at FROM request_limits
    UNION ALL SELECT 'check of days', verified_at FROM verifications
    UNION ALL SELECT 'failed day', attempted_at FROM day_failures
    UNION ALL SELECT 'fact about the platform', found_at FROM platform_facts
  )
SELECT kind, count(*) AS rows, max(moment) AS latest
FROM dated
WHERE moment > $since
GROUP BY kind
ORDER BY kind
