-- Grain: one row per intent to send a prompt of the project, for a job or a message, oldest first.
SELECT changed_at
FROM job_transitions
JOIN agent_jobs ON agent_jobs.id = job_transitions.job
WHERE project = $project AND to_state = 'submitting' AND changed_at > $since::TIMESTAMP
ORDER BY changed_at
