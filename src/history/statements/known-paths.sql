-- Grain: one row per path of the project that was ever viewed. The slash in front keeps the client from dropping a byte
-- order mark with which a path may begin.
SELECT path_id, '/' || path AS path
FROM internal.paths
WHERE project_id = $project_id
