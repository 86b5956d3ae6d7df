-- Grain: one row per page of the project that the latest selection considered, in its order.
SELECT path, chosen_at, is_flagged, code, facts, weekly_human, weekly_ai
FROM choices
WHERE project = $project
ORDER BY rowid
