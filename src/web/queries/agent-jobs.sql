-- Grain: one row per agent job, newest first.
SELECT id, path, state, pr_link, planned_at, ended_at, merged_on, closed_on, reason, note
FROM jobs
WHERE project = $project
ORDER BY id DESC
