-- Grain: one row with the day of the project's last export, to which ages are counted.
SELECT coalesce(max(attempted_at)::DATE, $to::DATE) AS day
FROM day_loads
WHERE project = $project
