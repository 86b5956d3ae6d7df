-- Grain: one row per audience and basis of the experiment.
SELECT * EXCLUDE (project)
FROM experiment_effect
WHERE project = $project
ORDER BY audience DESC, basis
