-- The day keeps its rows, and the time at which it was last read.
UPDATE day_loads
SET state = 'failed', failure = 'its numbers on the platform have changed; it will be loaded again next time', failures = 1
WHERE project = $project AND day = $day::DATE
