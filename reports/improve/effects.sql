-- Grain: one row per pull request from the twelve weeks up to the end of the reported week, latest
-- first.
SELECT job, path, counted_from, counted_from_is, weeks_before, weeks_after, views_before, views_after, comparison
FROM job_effects
WHERE project = $project AND counted_from > $to::DATE - 84
ORDER BY counted_from DESC, job
