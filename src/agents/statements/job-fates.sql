-- Grain: one row per job.
SELECT project, path, planned_at, state, submitted_at FROM agent_jobs
