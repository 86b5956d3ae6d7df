-- Grain: one row per execution of a step, the newest first.
SELECT step, started_at, ended_at, outcome, summary
FROM runs
-- The publish step was still running when the history was copied.
WHERE NOT (step = 'publish' AND outcome = 'running')
ORDER BY started_at DESC
LIMIT 20
