-- Rows dated in the future count from now, because it is unknown whether the clock was wrong then or
-- is wrong now. A pause lasts as long as the server asked for.
UPDATE request_uses
SET used_at = $now::TIMESTAMP, paused_until = $now::TIMESTAMP + (paused_until - used_at)
WHERE used_at > $now::TIMESTAMP
