-- Grain: one row per kind of finding about days, with how many and the latest.
SELECT finding, count(DISTINCT day) AS days, max(day) AS latest, arg_max(detail, day) AS detail
FROM data_quality
WHERE project = $project AND finding <> 'provisional'
GROUP BY finding
ORDER BY days DESC
