INSERT INTO request_limits (key, refused_since, refused_at, paused_until)
VALUES ($key, $refused_since, $refused_at, $paused_until)
ON CONFLICT (key) DO UPDATE SET refused_since = $refused_since, refused_at = $refused_at, paused_until = $paused_until
