-- Grain: one row per state change of the job or one of its messages, oldest first.
SELECT message, changed_at, from_state, to_state, cause
FROM job_transitions
WHERE job = $job
ORDER BY changed_at, number
