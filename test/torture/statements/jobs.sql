-- Grain: one row per job, oldest first.
SELECT id, path, state, prompt, remote_id, pr_link FROM agent_jobs ORDER BY id
