-- Grain: one row per week and audience, of the reported week and the one before, as far as they are
-- fully loaded. The one before shows which news is old.
SELECT $from::DATE AS week, audience, low, high, weeks_used, weeks, is_record
FROM usual_range($from)
WHERE project = $project
UNION ALL
SELECT $from::DATE - 7 AS week, audience, low, high, weeks_used, weeks, is_record
FROM usual_range($from::DATE - 7)
WHERE project = $project
