-- Grain: one row per job, oldest first.
SELECT id, path, state, prompt, attempt, remote_id, pr_link FROM jobs ORDER BY id
