INSERT INTO code_host_reads BY NAME
SELECT
  $repository AS repository,
  $until::TIMESTAMP AS read_until,
  $next::TIMESTAMP AS next_read_at,
  $problem AS problem
