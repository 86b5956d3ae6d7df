-- Grain: one row per kind of record in the state of which some are dated after $since, with the furthest time.
WITH
  dated (kind, moment) AS (
    SELECT 'record of requests', minute FROM requests
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
