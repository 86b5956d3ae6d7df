-- Inserts a row only if the day was never requested before.
INSERT INTO day_loads BY NAME
SELECT $project AS project, $day::DATE AS day, 'failed' AS state, $now::TIMESTAMP AS attempted_at, $failure AS failure, 1 AS failures
WHERE NOT EXISTS (FROM day_loads WHERE project = $project AND day = $day::DATE)
