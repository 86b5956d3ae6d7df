-- Grain: one row per lease or refusal of the bucket that still counts. Readership 0.1.0 named a
-- bucket after the environment variable of its key.
SELECT used_at, requests, paused_until
FROM request_uses
WHERE
  (bucket = $bucket OR list_contains(string_split($variables, ','), bucket))
  AND (used_at > $since::TIMESTAMP OR paused_until > $now::TIMESTAMP)
ORDER BY used_at
