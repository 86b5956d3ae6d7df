-- Grain: one row per follow-up message, as the state has it.
SELECT
  message.id,
  job.reference || '-' || message.id AS reference,
  message.job,
  CASE message.state WHEN 'unconfirmed' THEN 'unknown' WHEN 'submitting' THEN 'sending' ELSE message.state END AS state,
  message.origin,
  message.prompt,
  message.planned_at,
  message.submitted_at,
  message.note
FROM agent_messages AS message JOIN jobs AS job ON job.id = message.job
ORDER BY message.id
