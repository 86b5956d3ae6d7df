-- Grain: one row per execution of a step, the newest first.
SELECT step, started_at, ended_at, outcome, summary
FROM runs
-- While the history is being published, the run of that step is still going on.
WHERE NOT (step = 'publish' AND outcome = 'running')
ORDER BY started_at DESC
LIMIT 20
