-- Grain: one row per page whose path is the given one or similar to it, most similar first, at most 3.
SELECT path
FROM (SELECT DISTINCT path FROM page_views WHERE project = $project)
WHERE jaro_winkler_similarity(path, $path) > 0.8
ORDER BY path = $path DESC, jaro_winkler_similarity(path, $path) DESC, path
LIMIT 3
