-- Grain: one row per project of which the first day with views on the platform is known.
SELECT project, json_extract(value, '$') AS day
FROM platform_facts
WHERE fact = 'first day'
ORDER BY project
