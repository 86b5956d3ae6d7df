INSERT INTO experiment_pairs BY NAME
SELECT
  $project AS project,
  (SELECT coalesce(max(pair), 0) + 1 FROM experiment_pairs)::INTEGER AS pair,
  $now::TIMESTAMP AS drawn_at,
  $seed AS seed,
  path,
  is_treated,
  $job::INTEGER AS job_id
FROM (VALUES ($path, true), ($heldOut, false)) AS pages (path, is_treated)
