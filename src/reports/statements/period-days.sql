-- Grain: one row per day of the period, whether or not it is loaded.
SELECT
  calendar.day::DATE AS day,
  site_days.state,
  restated.human IS NOT NULL AS is_restated,
  coalesce(restated.human, 0)::BIGINT AS human_restated,
  coalesce(restated.ai, 0)::BIGINT AS ai_restated
FROM
  generate_series($from::DATE, $to::DATE, INTERVAL 1 DAY) AS calendar (day)
  LEFT JOIN site_days ON site_days.project = $project AND site_days.day = calendar.day
  LEFT JOIN (
    SELECT day, sum(human_after - human_before) AS human, sum(ai_after - ai_before) AS ai
    FROM restatements
    WHERE project = $project
    GROUP BY day
  ) AS restated ON restated.day = calendar.day
ORDER BY calendar.day
