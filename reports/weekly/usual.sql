-- Grain: one row per audience, empty if the reported week is not fully loaded.
SELECT audience, low, high, weeks_used, weeks, is_record
FROM usual_range($from)
WHERE project = $project
