-- Grain: one row per audience and page that moved, the five farthest from what was expected.
SELECT audience, path, views, round(expected)::BIGINT AS expected
FROM movers($from) AS mover
WHERE project = $project
ORDER BY abs(views - mover.expected) DESC, path, audience
LIMIT 5
