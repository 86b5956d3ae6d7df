-- Grain: one row per page that one audience reads and the other rarely does, for the five most
-- viewed pages of each kind.
SELECT path, human, ai, if(ai > human, 'ai', 'human') AS reader
FROM
  (
    SELECT path, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai
    FROM page_views
    WHERE project = $project AND day BETWEEN $from::DATE AND $to::DATE
    GROUP BY path
  )
WHERE greatest(human, ai) >= 50 AND greatest(human, ai) >= 10 * least(human, ai)
QUALIFY row_number() OVER (PARTITION BY ai > human ORDER BY greatest(human, ai) DESC, path) <= 5
ORDER BY greatest(human, ai) DESC, path
