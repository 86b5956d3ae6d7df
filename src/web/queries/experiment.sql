-- Grain: one row per audience of the experiment.
SELECT * EXCLUDE (project)
FROM experiment_effect
WHERE project = $project
ORDER BY audience DESC
