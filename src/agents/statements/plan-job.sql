INSERT INTO agent_jobs BY NAME
SELECT
  (SELECT coalesce(max(id), 0) + 1 FROM agent_jobs)::INTEGER AS id,
  $project AS project,
  $path AS path,
  'planned' AS state,
  $reason AS reason,
  $prompt AS prompt,
  $now::TIMESTAMP AS planned_at,
  0 AS polls,
  $weekly_human::DOUBLE AS weekly_human,
  $weekly_ai::DOUBLE AS weekly_ai,
  $trend::DOUBLE AS trend,
  from_json($weeks, '[{"week": "DATE", "human": "BIGINT", "ai": "BIGINT"}]') AS weeks
RETURNING id
