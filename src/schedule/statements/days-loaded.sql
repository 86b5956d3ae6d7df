-- Grain: one row, how many days of the period are stored.
SELECT count(*) AS days
FROM day_loads
WHERE project = $project AND day BETWEEN $first::DATE AND $last::DATE AND loaded_at IS NOT NULL
