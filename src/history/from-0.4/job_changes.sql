-- Grain: one row per change of state of a job or one of its messages.
SELECT
  job,
  message,
  changed_at,
  CASE from_state WHEN 'unconfirmed' THEN 'unknown' WHEN 'submitting' THEN 'sending' ELSE from_state END AS from_state,
  CASE to_state WHEN 'unconfirmed' THEN 'unknown' WHEN 'submitting' THEN 'sending' ELSE to_state END AS to_state,
  cause
FROM job_transitions
ORDER BY job, number
