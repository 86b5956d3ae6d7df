-- Grain: one row per record of requests, or pause, of the bucket that still counts.
SELECT used_at, requests, paused_until
FROM request_uses
WHERE
  bucket = $bucket
  AND (used_at > $since::TIMESTAMP OR paused_until > $now::TIMESTAMP)
ORDER BY used_at
