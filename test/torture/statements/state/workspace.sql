-- Grain: one row.
SELECT id, attempt FROM workspace
