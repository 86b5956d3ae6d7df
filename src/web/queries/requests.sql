-- Grain: one row per hour with requests counted toward the hourly limit, the latest first.
SELECT date_trunc('hour', used_at) AS hour, cause, sum(requests) AS requests
FROM request_uses
GROUP BY ALL
ORDER BY hour DESC, cause
