-- Grain: one row per project with a loaded day.
SELECT
  project,
  min(day) AS first_day,
  max(day) AS last_day,
  count(*) FILTER (state <> 'final') AS unsettled,
  max(loaded_at) AS loaded_at
FROM day_loads
WHERE loaded_at IS NOT NULL
GROUP BY project
