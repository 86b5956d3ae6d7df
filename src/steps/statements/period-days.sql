-- Grain: one row per stored day of the period, oldest first.
SELECT day, state = 'final' AS is_final, human, ai
FROM site_days
WHERE project = $project AND day BETWEEN $first::DATE AND $last::DATE
ORDER BY day
