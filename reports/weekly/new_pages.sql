-- Grain: one row per page never seen before the reported week, the five most read.
SELECT path, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai
FROM page_views AS this_week
WHERE
  project = $project
  AND day BETWEEN $from::DATE AND $to::DATE
  AND human + ai > 0
  AND NOT EXISTS (
    FROM page_views AS earlier
    WHERE earlier.project = $project AND earlier.path = this_week.path AND earlier.day < $from::DATE AND earlier.human + earlier.ai > 0
  )
GROUP BY path
ORDER BY sum(human + ai) DESC, path
LIMIT 5
