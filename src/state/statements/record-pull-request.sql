INSERT INTO pull_requests (job, checked_at, next_check_at, closed_on, merged_into, problem)
VALUES ($job, $now, $next, $closed_on, $merged_into, $problem)
