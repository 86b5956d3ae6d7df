INSERT INTO known_days (project, stamp, days)
VALUES ($project, $stamp, $days)
