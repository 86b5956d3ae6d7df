-- Grain: one row with the extent of the project's history, when the period was last loaded, and its views.
SELECT
  min(day) AS first_day,
  max(day) AS last_day,
  max(loaded_at) FILTER (day BETWEEN $from::DATE AND $to::DATE) AS latest_load,
  coalesce(sum(human + ai) FILTER (day BETWEEN $from::DATE AND $to::DATE), 0)::BIGINT AS views,
  coalesce(min(day) > (SELECT min(first_day) FROM history_starts WHERE project = $project), FALSE) AS has_older
FROM day_loads
WHERE project = $project AND loaded_at IS NOT NULL
