-- Grain: one row of facts about the whole history and the loading of the reported week.
WITH history AS (
  SELECT
    min(day) AS first_day,
    -- A week is named for its middle day, whichever weekday it starts on.
    strftime($from::DATE - 7 * floor(($from::DATE - min(day) + 6) / 7)::INTEGER + 3, '%G-W%V') AS first_week,
    strftime($from::DATE - 7 * floor(($from::DATE - max(day) + 6) / 7)::INTEGER + 3, '%G-W%V') AS last_week,
    count(DISTINCT floor(($from::DATE - day + 6) / 7)) AS weeks,
    coalesce(sum(total) FILTER (day BETWEEN $from::DATE AND $to::DATE), 0) AS total
  FROM site_days
  WHERE project = $project
),

loading AS (
  SELECT max(loaded_at) AS latest_load
  FROM day_loads
  WHERE project = $project AND day BETWEEN $from::DATE AND $to::DATE
),

restated AS (
  SELECT count(DISTINCT day) AS days, coalesce(sum(total_after - total_before), 0) AS views
  FROM restatements
  WHERE project = $project AND day BETWEEN $from::DATE AND $to::DATE
)

SELECT
  first_day,
  first_week,
  last_week,
  weeks,
  latest_load,
  restated.days AS restated_days,
  restated.views / nullif(history.total - restated.views, 0) AS restated_ratio
FROM history, loading, restated
