-- Grain: one row per note about the project, oldest first.
SELECT day, text, path, is_break
FROM notes
WHERE project = $project
ORDER BY day, is_break DESC, text
