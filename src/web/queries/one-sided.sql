-- Grain: one row per page of the range that one audience reads and the other seldom reads: the fifteen most read of each.
SELECT path, human, ai, if(ai > human, 'ai', 'human') AS reader, count(*) OVER (PARTITION BY ai > human) AS found
FROM page_changes
WHERE project = $project AND greatest(human, ai) >= 50 AND greatest(human, ai) >= 10 * least(human, ai)
QUALIFY row_number() OVER (PARTITION BY ai > human ORDER BY greatest(human, ai) DESC, path) <= 15
ORDER BY greatest(human, ai) DESC, path
