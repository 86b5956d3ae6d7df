-- Grain: one row per merged job and audience, latest merge first.
SELECT job, path, audience, merged_on, weeks_after, verdict, ratio, low, high, why
FROM job_effects
WHERE project = $project AND merged_on IS NOT NULL
ORDER BY merged_on DESC, job, audience DESC
