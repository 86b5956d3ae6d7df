UPDATE request_limits
SET
  refused_since = NULL,
  refused_at = NULL,
  paused_until = NULL,
  learned_limit = coalesce($limit, learned_limit),
  learned_at = iif($limit IS NULL, learned_at, $now)
WHERE key = $key
