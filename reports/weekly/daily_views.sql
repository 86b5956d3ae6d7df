-- Grain: one row per day, from the first day of the earliest week of the thirteen that has a loaded
-- day. The views of a day that is not loaded are NULL, not zero.
WITH calendar AS (
  SELECT
    unnest(generate_series($from::DATE - 7 * (($from::DATE - min(day) + 6) // 7)::INTEGER, $to::DATE, INTERVAL 1 DAY))::DATE AS day
  FROM site_days
  WHERE project = $project AND day BETWEEN $from::DATE - 84 AND $to::DATE
)

SELECT day, human, ai, coalesce(is_outage, false) AS is_outage
FROM calendar LEFT JOIN (FROM site_days WHERE project = $project) AS loaded USING (day)
ORDER BY day
