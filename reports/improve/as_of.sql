-- Grain: one row with the day of the project's last export, to which ages are counted.
SELECT coalesce(max(checked_at)::DATE, $to::DATE) AS day
FROM days
WHERE project = $project
