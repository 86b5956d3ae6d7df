-- Grain: one row per audience with measured pairs of the experiment.
SELECT audience, pairs, verdict, ratio, low, high
FROM experiment_effect
WHERE project = $project
ORDER BY audience DESC
