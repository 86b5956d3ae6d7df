INSERT INTO pull_requests BY NAME
SELECT
  $job::INTEGER AS job,
  $now::TIMESTAMP AS checked_at,
  $next::TIMESTAMP AS next_check_at,
  $closed_on::DATE AS closed_on,
  $merged_into AS merged_into,
  $problem AS problem
