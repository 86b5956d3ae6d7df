-- Grain: one row per note about the thirteen weeks, oldest first.
SELECT day, text, path, is_break
FROM notes
WHERE project = $project AND day BETWEEN $from::DATE - 84 AND $to::DATE
ORDER BY day, is_break DESC, text
