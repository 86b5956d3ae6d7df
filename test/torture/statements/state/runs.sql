-- Grain: one row per step of a command.
SELECT run, step, outcome, started_at FROM runs ORDER BY started_at
