-- The rows of the bucket that are dated ahead of the clock: set back since, or ahead then, it cannot be known which.
UPDATE request_uses SET used_at = $now::TIMESTAMP WHERE bucket = $bucket AND used_at > $now::TIMESTAMP
