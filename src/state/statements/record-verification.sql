INSERT INTO verifications (project, verified_at, first_day, last_day, days_differing)
VALUES ($project, $now, $first, $last, $days_differing)
