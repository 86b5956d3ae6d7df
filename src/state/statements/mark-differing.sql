-- The day is due at once, also if it was read today.
INSERT INTO day_failures (project, day, attempted_at, failure, failures)
VALUES ($project, $day, $readAt, 'its numbers on the platform have changed; it will be loaded again next time', 1)
ON CONFLICT (project, day) DO NOTHING
