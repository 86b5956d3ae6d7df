-- Grain: one row, the day that failed. What an earlier load stored keeps its numbers and its loaded_at.
UPDATE day_loads
SET state = 'failed', attempted_at = $now::TIMESTAMP, failure = $failure
WHERE project = $project AND day = $day::DATE
