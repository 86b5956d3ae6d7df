-- Grain: one row per change of state of a job or of one of its messages, in the order in which they happened.
SELECT job, message, changed_at, from_state, to_state FROM job_changes ORDER BY rowid
