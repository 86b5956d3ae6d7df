-- Grain: one row per unmerged agent job that has not ended, or ended in the reported week or since.
SELECT id, path, state, remote_status, pr_link, planned_at, ended_at, note
FROM jobs
WHERE project = $project AND merged_on IS NULL AND (ended_at IS NULL OR ended_at >= $from::DATE)
ORDER BY id
