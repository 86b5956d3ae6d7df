-- Grain: one row, when the last pause of the project ends; NULL when it was never paused.
SELECT max(paused_until) AS paused_until FROM agent_pauses WHERE project = $project
