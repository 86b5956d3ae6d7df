-- An update that finds nothing new is no change of the state.
INSERT INTO pull_requests (job, checked_at, next_check_at, closed_on, merged_into, problem)
VALUES ($job, $now, $next, $closed_on, $merged_into, $problem)
ON CONFLICT (job) DO UPDATE SET
  checked_at = excluded.checked_at,
  next_check_at = excluded.next_check_at,
  closed_on = excluded.closed_on,
  merged_into = excluded.merged_into,
  problem = excluded.problem
