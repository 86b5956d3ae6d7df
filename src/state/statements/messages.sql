-- Grain: one row per follow-up message to the job, or to a job of the project, or to any, oldest first.
SELECT messages.*, jobs.project, jobs.path
FROM messages
JOIN jobs ON jobs.id = messages.job
WHERE ($job IS NULL OR messages.job = $job) AND ($project IS NULL OR jobs.project = $project)
ORDER BY messages.id
