-- Grain: one row per restatement, as text.
SELECT concat_ws(' ', day, restated_at, total_before, total_after) AS restatement
FROM restatements
ORDER BY ALL
