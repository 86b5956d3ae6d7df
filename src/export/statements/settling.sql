-- Grain: one row. Ages are the days between the end of a day and the load that found it changed, for the last 90 days
-- only. They count where the night before would have found the change: only the last 35 days are checked every night.
-- When an outage is filled says nothing about other days.
WITH
  found AS (
    SELECT
      day,
      date_diff('day', day, restated_at::DATE) - 1 AS age,
      age <= 35 AND checked_before > restated_at - INTERVAL 36 HOUR AS is_dated
    FROM restatements ANTI JOIN internal.outages USING (project, day)
    WHERE project = $project AND day > $now::DATE - 90
  )

SELECT
  count(DISTINCT day) AS restated_days,
  max(age) FILTER (is_dated) AS oldest_change_days,
  coalesce(quantile_cont(age, 0.5) FILTER (is_dated), 0) AS median_change_days
FROM found
