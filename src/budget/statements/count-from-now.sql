-- Rows dated in the future count from now, because it is unknown whether the clock was wrong then or
-- is wrong now.
UPDATE request_uses SET used_at = $now::TIMESTAMP WHERE used_at > $now::TIMESTAMP
