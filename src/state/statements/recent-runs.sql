-- Grain: one row per execution of a step, the five last ones of each, the newest first.
SELECT step, started_at, ended_at, outcome, summary
FROM (SELECT *, row_number() OVER (PARTITION BY step ORDER BY started_at DESC) AS place FROM runs)
WHERE place <= 5
ORDER BY started_at DESC
