-- Grain: one row per attempt to send a prompt of the project, for a job or a message.
SELECT changed_at AS sent_at
FROM job_changes
JOIN jobs ON jobs.id = job_changes.job
WHERE project = $project AND to_state = 'sending' AND changed_at > $since
