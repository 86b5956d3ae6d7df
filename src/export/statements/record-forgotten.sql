-- The platform no longer has any views for this day, so what is stored is final.
UPDATE day_loads
SET state = 'final', attempted_at = $now::TIMESTAMP, failure = $failure, failures = 0
WHERE project = $project AND day = $day::DATE
