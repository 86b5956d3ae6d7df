-- Grain: one row per follow-up message to a job of the project, or of all of them, oldest first.
SELECT
  message.id,
  message.job,
  message.state,
  message.origin,
  message.prompt,
  message.planned_at,
  message.submitted_at,
  message.note,
  job.project,
  job.path,
  job.planned_at AS job_planned_at
FROM agent_messages AS message
JOIN agent_jobs AS job ON job.id = message.job
WHERE $project::VARCHAR IS NULL OR job.project = $project
ORDER BY message.id
