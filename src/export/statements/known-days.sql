-- Grain: one row with the number of days of a range that were ever asked for.
SELECT count(*) AS days FROM day_loads WHERE project = $project AND day BETWEEN $first::DATE AND $last::DATE
