-- Grain: one row per job that was merged in the twelve weeks up to the end of the reported week, latest merge first.
SELECT * EXCLUDE (project)
FROM job_effects
WHERE project = $project AND merged_on BETWEEN $to::DATE - 83 AND $to::DATE
ORDER BY merged_on DESC, job
