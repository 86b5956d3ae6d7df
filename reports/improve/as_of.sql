-- Grain: one row, when the project was last exported: ages are counted to that day.
SELECT coalesce(max(attempted_at)::DATE, $to::DATE) AS day
FROM day_loads
WHERE project = $project
