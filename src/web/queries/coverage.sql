-- Grain: one row per project with a loaded day: what is loaded, and what is not.
SELECT
  project,
  min(day) AS first_day,
  max(day) AS last_day,
  count(*) AS days_loaded,
  datediff('day', min(day), max(day)) + 1 - count(*) AS days_missing,
  count(*) FILTER (state <> 'final') AS days_provisional
FROM site_days
GROUP BY project
ORDER BY project
