-- Grain: one row per project of which days changed, or could not be loaded, since the report step last succeeded: $reported.
SELECT DISTINCT project
FROM
  (
    SELECT project, loaded_at AS changed_at FROM day_loads
    UNION ALL
    SELECT project, attempted_at FROM day_loads WHERE failure IS NOT NULL
    UNION ALL
    SELECT project, attempted_at FROM day_failures
  )
WHERE changed_at >= coalesce($reported::TIMESTAMP, '-infinity')
