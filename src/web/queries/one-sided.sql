-- Grain: one row per page of the range that one audience reads and the other hardly reads: the fifteen most read of each.
SELECT path, human, ai, if(ai > human, 'ai', 'human') AS reader, count(*) OVER (PARTITION BY ai > human) AS found
FROM
  (
    SELECT path, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai
    FROM page_views
    WHERE project = $project AND day BETWEEN $from::DATE AND $to::DATE
    GROUP BY path
  )
WHERE greatest(human, ai) >= 50 AND greatest(human, ai) >= 10 * least(human, ai)
QUALIFY row_number() OVER (PARTITION BY ai > human ORDER BY greatest(human, ai) DESC, path) <= 15
ORDER BY greatest(human, ai) DESC, path
