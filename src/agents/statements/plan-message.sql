INSERT INTO agent_messages BY NAME
SELECT
  (SELECT coalesce(max(id), 0) + 1 FROM agent_messages)::INTEGER AS id,
  $job::INTEGER AS job,
  'planned' AS state,
  $origin AS origin,
  $prompt AS prompt,
  $now::TIMESTAMP AS planned_at
RETURNING id
