-- Grain: one row when something is stored for the day, else none.
SELECT human, ai, total FROM day_loads WHERE project = $project AND day = $day::DATE AND loaded_at IS NOT NULL
