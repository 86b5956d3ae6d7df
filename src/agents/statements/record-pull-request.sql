INSERT INTO pull_requests BY NAME
SELECT
  $job::INTEGER AS job,
  $now::TIMESTAMP AS checked_at,
  $next::TIMESTAMP AS next_check_at,
  $closed_on::DATE AS closed_on,
  $problem AS problem
