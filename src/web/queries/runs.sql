-- Grain: one row per execution of a step, the five last ones of each, the newest first.
SELECT step, started_at, ended_at, outcome, summary
FROM runs
-- The publish step was still running when the history was copied.
WHERE NOT (step = 'publish' AND outcome = 'running')
QUALIFY row_number() OVER (PARTITION BY step ORDER BY started_at DESC) <= 5
ORDER BY started_at DESC
