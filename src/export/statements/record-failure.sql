-- Rows stored by an earlier load keep their numbers and loaded_at.
UPDATE day_loads
SET state = 'failed', attempted_at = $now::TIMESTAMP, failure = $failure, failures = failures + 1
WHERE project = $project AND day = $day::DATE
