-- Grain: one row per project and quarter of the attached history `last`, with its rows.
SELECT project_id, date_trunc('quarter', day)::DATE AS first, count(*) AS rows
FROM last.internal.counts
GROUP BY ALL
ORDER BY ALL
