-- Grain: one row per week with at least one loaded day, of the thirteen ending with the reported
-- week, oldest first. Weeks are counted back from the reported week's first day, whichever weekday
-- that is.
SELECT
  $from::DATE - 7 * (($from::DATE - day + 6) // 7)::INTEGER AS week,
  sum(human)::BIGINT AS human,
  sum(ai)::BIGINT AS ai,
  sum(ai) / nullif(sum(human) + sum(ai), 0) AS ai_share,
  count(*) AS days_loaded,
  coalesce(list(day ORDER BY day) FILTER (is_outage), []) AS outages
FROM site_days
WHERE project = $project AND day BETWEEN $from::DATE - 84 AND $to::DATE
GROUP BY week
ORDER BY week
