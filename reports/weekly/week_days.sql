-- Grain: one row per day of the reported week, whether or not it is loaded.
SELECT calendar.day::DATE AS day, site_days.state
FROM
  generate_series($from::DATE, $to::DATE, INTERVAL 1 DAY) AS calendar (day)
  LEFT JOIN site_days ON site_days.project = $project AND site_days.day = calendar.day
ORDER BY calendar.day
