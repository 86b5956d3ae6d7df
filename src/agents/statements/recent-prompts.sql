-- Grain: one row per intent to send a prompt of the project, for a job or a message, and one with the end of the project's
-- last pause, or NULL if it was never paused. A pause lasts no longer than the platform asked for; one that a wrong clock
-- dated in the future is ignored.
SELECT changed_at AS used_at, 1 AS requests, NULL::TIMESTAMP AS paused_until
FROM job_transitions
JOIN agent_jobs ON agent_jobs.id = job_transitions.job
WHERE project = $project AND to_state = 'submitting' AND changed_at > $since::TIMESTAMP
UNION ALL
SELECT $now::TIMESTAMP, 0, max(least(paused_until, $now::TIMESTAMP + (paused_until - paused_at)))
FROM agent_pauses
WHERE project = $project AND paused_at <= $now::TIMESTAMP + INTERVAL 1 HOUR
