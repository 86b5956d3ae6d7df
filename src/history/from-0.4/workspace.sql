-- Grain: one row: the workspace and the place that sends.
SELECT id, machine, host, path FROM workspace
