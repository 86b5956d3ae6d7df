-- Grain: one row.
SELECT
  count(*) FILTER (last_read >= $from::DATE) AS read,
  count(*) AS ever_seen,
  count(*) FILTER (first_read >= $from::DATE) AS first_seen
FROM
  (
    SELECT path, min(day) AS first_read, max(day) AS last_read
    FROM page_views
    WHERE project = $project AND day <= $to::DATE AND human + ai > 0
    GROUP BY path
  )
