-- Grain: one row. Ages are the days between the end of a day and the load that found it changed,
-- for the last 90 days only.
SELECT
  count(DISTINCT day) AS restated_days,
  max(date_diff('day', day, restated_at::DATE) - 1) AS oldest_change_days,
  coalesce(quantile_cont(date_diff('day', day, restated_at::DATE) - 1, 0.5), 0) AS median_change_days
FROM restatements
WHERE project = $project AND day > $now::DATE - 90
