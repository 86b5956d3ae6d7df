-- Grain: one row per follow-up message to a job of the project, oldest first.
SELECT
  message.id,
  message.job,
  message.state,
  message.origin,
  message.prompt,
  message.planned_at,
  message.submitted_at,
  message.note
FROM agent_messages AS message
JOIN agent_jobs AS job ON job.id = message.job
WHERE job.project = $project
ORDER BY message.id
