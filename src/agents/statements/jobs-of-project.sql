-- Grain: one row per job of the project, or of all of them, oldest first. Jobs planned before evidence was stored have zeros and no
-- weeks.
SELECT
  id,
  agent_jobs.project,
  agent_jobs.path,
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
  closed_on,
  merged_into,
  problem AS pull_request_problem,
  coalesce(weekly_human, 0) AS weekly_human,
  coalesce(weekly_ai, 0) AS weekly_ai,
  trend,
  coalesce(weeks, []) AS weeks
FROM agent_jobs
LEFT JOIN pull_requests ON pull_requests.job = agent_jobs.id
WHERE $project::VARCHAR IS NULL OR agent_jobs.project = $project
ORDER BY id
