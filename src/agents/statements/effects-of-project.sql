-- Grain: one row per job of the project with a pull request that has ended or been merged.
SELECT job, path, counted_from, counted_from_is, weeks_before, weeks_after, views_before, views_after, comparison
FROM job_effects
WHERE project = $project
ORDER BY job
