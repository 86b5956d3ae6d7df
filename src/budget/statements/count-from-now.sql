-- Rows dated in the future count from now: the clock was wrong either then or now, and nobody can
-- tell which.
UPDATE request_uses SET used_at = $now::TIMESTAMP WHERE used_at > $now::TIMESTAMP
