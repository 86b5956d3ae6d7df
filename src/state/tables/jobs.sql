-- Grain: one row: all jobs, as JSON, with the states of their pull requests.
SELECT
  json_group_array(
    json_object(
      'id', jobs.id,
      'project', project,
      'path', path,
      'state', state,
      'remote_status', remote_status,
      'pr_link', pr_link,
      'reason', reason,
      'planned_at', planned_at,
      'submitted_at', submitted_at,
      'ended_at', ended_at,
      'remote_id', remote_id,
      'note', note,
      'merged_on', merged_on,
      'closed_on', CASE WHEN merged_on IS NULL THEN closed_on END,
      'pull_request', CASE
        WHEN pr_link IS NULL THEN NULL
        WHEN merged_on IS NOT NULL THEN 'merged'
        WHEN closed_on IS NOT NULL THEN 'closed'
        WHEN merged_into IS NOT NULL THEN 'merged elsewhere'
        WHEN problem IS NOT NULL THEN 'unknown'
        ELSE 'open'
      END,
      'merged_into', merged_into,
      'pull_request_problem', problem,
      'weekly_human', weekly_human,
      'weekly_ai', weekly_ai,
      'trend', trend,
      'messages', (SELECT count(*) FROM messages WHERE messages.job = jobs.id),
      'unknown_messages', (SELECT count(*) FROM messages WHERE messages.job = jobs.id AND messages.state = 'unknown'),
      'reference', reference
    )
    ORDER BY jobs.id
  ) AS rows
FROM jobs LEFT JOIN pull_requests ON pull_requests.job = jobs.id
