-- Grain: one row, the day of which the platform no longer has anything.
UPDATE day_loads
SET state = 'final', attempted_at = $now::TIMESTAMP, failure = $failure
WHERE project = $project AND day = $day::DATE
