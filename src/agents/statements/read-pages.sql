-- Grain: one row per page of the project that was viewed in the last 13 weeks.
SELECT DISTINCT page AS path FROM page_views WHERE project = $project AND day > $now::TIMESTAMP::DATE - 91
