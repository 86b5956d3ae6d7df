-- Grain: one row with the number of stored days in the period.
SELECT count(*) AS days
FROM day_loads
WHERE project = $project AND day BETWEEN $first::DATE AND $last::DATE AND loaded_at IS NOT NULL
