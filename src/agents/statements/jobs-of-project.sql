-- Grain: one row per job of the project.
SELECT
  id,
  project,
  path,
  state,
  reason,
  prompt,
  planned_at,
  submitted_at,
  remote_id,
  remote_status,
  pr_link,
  polls,
  next_poll_at,
  ended_at,
  note
FROM agent_jobs
WHERE project = $project
ORDER BY id
