-- Grain: one row per lease or refusal of the bucket that still counts; per lease only, if $own.
SELECT used_at, requests, paused_until, cause = 'refused' AS is_refusal
FROM request_uses
WHERE
  bucket = $bucket
  AND (NOT $own OR cause = 'reserved')
  AND (used_at > $since::TIMESTAMP OR paused_until > $now::TIMESTAMP)
ORDER BY used_at
