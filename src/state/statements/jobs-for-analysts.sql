-- Grain: one row per job, with the state of its pull request.
SELECT
  jobs.id,
  project,
  path,
  state,
  remote_status,
  pr_link,
  reason,
  planned_at,
  submitted_at,
  ended_at,
  remote_id,
  note,
  merged_on,
  CASE WHEN merged_on IS NULL THEN closed_on END AS closed_on,
  CASE
    WHEN pr_link IS NULL THEN NULL
    WHEN merged_on IS NOT NULL THEN 'merged'
    WHEN closed_on IS NOT NULL THEN 'closed'
    WHEN merged_into IS NOT NULL THEN 'merged elsewhere'
    WHEN problem IS NOT NULL THEN 'unknown'
    ELSE 'open'
  END AS pull_request,
  merged_into,
  problem AS pull_request_problem,
  weekly_human,
  weekly_ai,
  trend,
  (SELECT count(*) FROM messages WHERE messages.job = jobs.id) AS messages,
  (SELECT count(*) FROM messages WHERE messages.job = jobs.id AND messages.state = 'unknown') AS unknown_messages,
  reference
FROM jobs
LEFT JOIN pull_requests ON pull_requests.job = jobs.id
ORDER BY jobs.id
