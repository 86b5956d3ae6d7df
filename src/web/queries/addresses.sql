-- Grain: one row per address of a page that was viewed in the range, the most viewed first.
SELECT path, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai
FROM page_views
WHERE project = $project AND page = $path AND day BETWEEN $from AND $to
GROUP BY path
HAVING sum(human + ai) > 0
ORDER BY sum(human + ai) DESC, path
