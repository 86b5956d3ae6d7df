-- Grain: one row with the number of days of a range that were ever requested.
SELECT count(*) AS days FROM day_loads WHERE project = $project AND day BETWEEN $first::DATE AND $last::DATE
