-- Grain: one row per audience of the reported week and of the week before, if they are fully loaded.
-- The week before shows what is not new.
SELECT $from::DATE AS week, audience, low, high, expected, weeks_used, weeks, is_record
FROM usual_range($from, project_id := $project)
UNION ALL
SELECT $from::DATE - 7 AS week, audience, low, high, expected, weeks_used, weeks, is_record
FROM usual_range($from::DATE - 7, project_id := $project)
