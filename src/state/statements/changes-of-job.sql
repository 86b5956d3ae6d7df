-- Grain: one row per change of state of the job or one of its messages, oldest first.
SELECT message, changed_at, from_state, to_state, cause
FROM job_changes
WHERE job = $job
ORDER BY changed_at, rowid
