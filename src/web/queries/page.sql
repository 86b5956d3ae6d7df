-- Grain: one row with the facts of a page. Changes compare views per loaded day.
WITH
  views AS (
    SELECT
      coalesce(sum(human) FILTER (day BETWEEN $from::DATE AND $to::DATE), 0)::BIGINT AS human,
      coalesce(sum(ai) FILTER (day BETWEEN $from::DATE AND $to::DATE), 0)::BIGINT AS ai,
      sum(human) FILTER (day BETWEEN $from::DATE - $shift::INTEGER AND $to::DATE - $shift::INTEGER) AS human_before,
      sum(ai) FILTER (day BETWEEN $from::DATE - $shift::INTEGER AND $to::DATE - $shift::INTEGER) AS ai_before,
      min(day) AS first_read,
      max(day) AS last_read
    FROM page_views
    WHERE project = $project AND path = $path AND human + ai > 0
  ),

  loaded AS (
    SELECT
      count(*) FILTER (day BETWEEN $from::DATE AND $to::DATE) AS days,
      count(*) FILTER ($shift > 0 AND day BETWEEN $from::DATE - $shift::INTEGER AND $to::DATE - $shift::INTEGER) AS days_before
    FROM site_days
    WHERE project = $project
  )

SELECT
  human,
  ai,
  (human / nullif(days, 0)) / nullif(human_before / nullif(days_before, 0), 0) - 1 AS human_change,
  (ai / nullif(days, 0)) / nullif(ai_before / nullif(days_before, 0), 0) - 1 AS ai_change,
  first_read,
  last_read
FROM views CROSS JOIN loaded
