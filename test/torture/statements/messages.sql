-- Grain: one row per follow-up message, oldest first.
SELECT id, job, state, prompt FROM agent_messages ORDER BY id
