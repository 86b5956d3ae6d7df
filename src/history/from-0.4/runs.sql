-- Grain: one row per execution of a step.
SELECT * FROM runs ORDER BY started_at
