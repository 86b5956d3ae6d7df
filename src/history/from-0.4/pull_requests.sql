-- Grain: one row per job whose pull request was looked up.
SELECT * FROM pull_requests ORDER BY job
