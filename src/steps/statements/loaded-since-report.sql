-- Grain: one row per project of which days changed, or could not be loaded, since the report step last succeeded: $reported.
SELECT DISTINCT project
FROM (SELECT project, loaded_at AS seen_at FROM days UNION ALL SELECT project, attempted_at FROM day_failures)
WHERE seen_at >= coalesce($reported::TIMESTAMP, '-infinity')
