-- The latest days were read the night before, when they could still change.
UPDATE days
SET state = 'provisional', loaded_at = $since::DATE + INTERVAL 3 DAY, checked_at = $since::DATE + INTERVAL 3 DAY
WHERE day >= $since::DATE
