-- Grain: one row per path that was viewed on the day. The slash in front keeps the client from dropping a byte order mark
-- with which a path may begin.
SELECT '/' || path AS path, human, ai, total
FROM page_views
WHERE project = $project AND day = $day::DATE
