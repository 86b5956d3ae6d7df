-- Grain: one row per agent job of a page, newest first; `day` is when it was merged, or else planned.
SELECT id, state, pr_link, reason, note, planned_at, merged_on, coalesce(merged_on, ended_at::DATE, planned_at::DATE) AS day
FROM jobs
WHERE project = $project AND path = $path
ORDER BY id DESC
