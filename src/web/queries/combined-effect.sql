-- Grain: one row per audience with measured changes.
SELECT audience, changes, verdict, ratio, low, high
FROM project_effects
WHERE project = $project
ORDER BY audience DESC
