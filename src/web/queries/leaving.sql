-- Grain: one row per page that is losing people but not AI, up to the end of the range.
SELECT path, human_change, ai_change, round(weekly_human)::BIGINT AS human, round(weekly_ai)::BIGINT AS ai
FROM people_leaving($to::DATE + 1)
WHERE project = $project
LIMIT 10
