-- Grain: one row: the recorded executions of steps, as JSON.
SELECT
  json_group_array(
    json_object(
      'run', run,
      'step', step,
      'started_at', started_at,
      'ended_at', ended_at,
      'outcome', outcome,
      'summary', summary,
      'resume_at', resume_at
    )
    ORDER BY started_at
  ) AS rows
FROM runs
