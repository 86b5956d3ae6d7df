-- Grain: one row with the counts of pages and the five most read new ones, from one pass over the history.
SELECT
  count(*) FILTER (last_read >= $from::DATE) AS read,
  count(*) AS ever_seen,
  count(*) FILTER (first_read >= $from::DATE) AS first_seen,
  coalesce(
    list({path: path, human: human, ai: ai} ORDER BY human + ai DESC, path) FILTER (first_read >= $from::DATE),
    []
  )[:5] AS new_pages
FROM
  (
    SELECT
      path,
      min(day) AS first_read,
      max(day) AS last_read,
      coalesce(sum(human) FILTER (day >= $from::DATE), 0)::BIGINT AS human,
      coalesce(sum(ai) FILTER (day >= $from::DATE), 0)::BIGINT AS ai
    FROM page_views
    WHERE project = $project AND day <= $to::DATE AND human + ai > 0
    GROUP BY path
  )
