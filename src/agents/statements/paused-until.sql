-- Grain: one row with the end of the project's last pause, or NULL if it was never paused.
SELECT max(paused_until) AS paused_until FROM agent_pauses WHERE project = $project
