INSERT INTO day_failures (project, day, attempted_at, failure, failures)
VALUES ($project, $day, $now, $failure, 1)
ON CONFLICT (project, day) DO UPDATE
SET attempted_at = excluded.attempted_at, failure = excluded.failure, failures = failures + 1
