-- Grain: one row per minute since $since in which requests were sent with the key, also in the future.
SELECT minute, requests
FROM requests
WHERE key = $key AND minute >= $since
ORDER BY minute
