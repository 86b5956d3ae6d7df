-- Grain: one row per project of which days changed, or could not be loaded, since the report step last succeeded: $reported.
SELECT DISTINCT project
FROM day_loads
WHERE
  greatest(loaded_at, if(failure IS NULL, NULL, attempted_at))
  >= coalesce($reported::TIMESTAMP, '-infinity')
