-- Grain: one row, the job planned, numbered after the last one.
INSERT INTO agent_jobs BY NAME
SELECT
  (SELECT coalesce(max(id), 0) + 1 FROM agent_jobs)::INTEGER AS id,
  $project AS project,
  $path AS path,
  'planned' AS state,
  $reason AS reason,
  $prompt AS prompt,
  $now::TIMESTAMP AS planned_at,
  0 AS polls
RETURNING id
