-- Grain: one row per audience and page that moved, for the five furthest from the expected views.
SELECT audience, path, views, round(expected)::BIGINT AS expected, compared_with
FROM movers($from) AS mover
WHERE project = $project
ORDER BY abs(views - mover.expected) DESC, path, audience
LIMIT 5
