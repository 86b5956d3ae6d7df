-- Grain: one row per pair of the experiment, newest first.
SELECT * EXCLUDE (project)
FROM experiments
WHERE project = $project
ORDER BY job DESC
