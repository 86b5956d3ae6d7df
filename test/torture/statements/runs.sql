-- Grain: one row per step of a command.
SELECT concat_ws(' ', run, step) AS step, outcome FROM runs ORDER BY started_at
