-- Grain: one row per note, the latest first.
SELECT day, path, text, is_break
FROM notes
WHERE project = $project
ORDER BY day DESC, path
