-- Grain: one row per time the platform asked not to be sent prompts for a while.
SELECT * FROM agent_pauses ORDER BY paused_at
