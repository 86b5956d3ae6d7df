-- Grain: one row per merged job, latest merge first.
SELECT * EXCLUDE (project)
FROM job_effects
WHERE project = $project
ORDER BY merged_on DESC, job
