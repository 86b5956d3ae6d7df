-- Grain: one row per path of the project that was ever viewed. See rows-of-day.sql for the slash.
SELECT path_id, '/' || path AS path
FROM internal.paths
WHERE project_id = $project_id
