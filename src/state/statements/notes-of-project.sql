-- Grain: one row per note that concerns the project, oldest first.
SELECT day, text, path, is_break
FROM notes
WHERE project = $project
ORDER BY day, text, path, is_break
