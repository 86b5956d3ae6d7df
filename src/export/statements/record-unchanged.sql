UPDATE day_loads
SET state = $state, attempted_at = $now::TIMESTAMP, loaded_at = $now::TIMESTAMP, failure = NULL
WHERE project = $project AND day = $day::DATE
