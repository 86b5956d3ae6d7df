-- Grain: one row per job of the project with a pull request that has ended or been merged, and audience.
SELECT job, path, audience, merged_on, weeks_after, comparison_pages, verdict, why, ratio, low, high
FROM job_effects
WHERE project = $project
ORDER BY job, audience DESC
