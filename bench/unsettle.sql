-- The latest days were read the night before, when they could still change.
UPDATE day_loads
SET state = 'provisional', attempted_at = $since::DATE + INTERVAL 3 DAY, loaded_at = $since::DATE + INTERVAL 3 DAY
WHERE day >= $since::DATE
