-- Grain: one row with the end of the project's last pause, or NULL if it was never paused. A pause lasts no longer than
-- the platform asked for; one that a wrong clock dated in the future is ignored.
SELECT max(least(paused_until, $now::TIMESTAMP + (paused_until - paused_at))) AS paused_until
FROM agent_pauses
WHERE project = $project AND paused_at <= $now::TIMESTAMP + INTERVAL 1 HOUR
