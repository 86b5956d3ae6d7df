-- Grain: one row per day ever asked for.
SELECT day, state FROM day_loads WHERE project = $project ORDER BY day
