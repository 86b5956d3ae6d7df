-- Grain: one row per day of the last 53 weeks, from the first day of the history, with its position and state. The first
-- whole week of a month has its name.
WITH
  restated AS (
    SELECT day, sum(total_after - total_before)::BIGINT AS change
    FROM restatements
    WHERE project = $project
    GROUP BY day
  )

SELECT
  calendar.day::DATE AS day,
  datediff('week', date_trunc('week', $last::DATE)::DATE - 364, date_trunc('week', calendar.day)::DATE) AS week,
  isodow(calendar.day) - 1 AS weekday,
  if(weekday = 0 AND day(calendar.day) <= 7, strftime(calendar.day, '%b'), NULL) AS month,
  CASE
    WHEN failed.day IS NOT NULL THEN 'failed'
    WHEN days.state IS NULL THEN 'missing'
    WHEN days.state = 'final' AND restated.day IS NOT NULL THEN 'restated'
    ELSE days.state
  END AS state,
  restated.change,
  coalesce(failed.failure, days.problem) AS failure,
  days.human,
  days.ai
FROM
  generate_series(greatest($first::DATE, date_trunc('week', $last::DATE)::DATE - 364), $last::DATE, INTERVAL 1 DAY) AS calendar (day)
  LEFT JOIN days ON days.project = $project AND days.day = calendar.day
  LEFT JOIN day_failures AS failed ON failed.project = $project AND failed.day = calendar.day
  LEFT JOIN restated ON restated.day = calendar.day
ORDER BY calendar.day
