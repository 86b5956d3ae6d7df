UPDATE day_loads
SET state = $state, attempted_at = $now::TIMESTAMP, loaded_at = $now::TIMESTAMP, failure = NULL, failures = 0
WHERE project = $project AND day = $day::DATE
RETURNING pages
