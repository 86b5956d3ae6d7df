UPDATE workspace
SET attempt = attempt + 1, attempted_at = $now
RETURNING attempt
