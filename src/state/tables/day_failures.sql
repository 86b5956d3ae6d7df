-- Grain: one row: the days whose last attempt to load them failed, as JSON.
SELECT
  json_group_array(
    json_object(
      'project', project,
      'day', day,
      'attempted_at', attempted_at,
      'failure', failure,
      'failures', failures
    )
    ORDER BY project, day
  ) AS rows
FROM day_failures
