-- Grain: one row per page that is the given one or has a similar path, most similar first, at most 3.
SELECT path, is_page(path) AS is_page
FROM (SELECT DISTINCT page AS path FROM page_views WHERE project = $project)
WHERE jaro_winkler_similarity(path, $path) > 0.8
ORDER BY path = $path DESC, jaro_winkler_similarity(path, $path) DESC, path
LIMIT 3
