-- Grain: one row per follow-up message, oldest first.
SELECT id, job, state, prompt, attempt FROM messages ORDER BY id
