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
  note,
  merged_on,
  weekly_human,
  weekly_ai,
  human_rank,
  ai_rank,
  ai_per_human,
  trend,
  weeks
FROM agent_jobs
WHERE project = $project
ORDER BY id
