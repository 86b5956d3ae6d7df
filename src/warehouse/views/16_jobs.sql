-- Grain: one row per agent job.
CREATE OR REPLACE VIEW jobs AS
SELECT
  id,
  project,
  page_of(path) AS path,
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
  if(merged_on IS NULL, closed_on, NULL) AS closed_on,
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
  coalesce(messages, 0) AS messages,
  coalesce(unknown_messages, 0) AS unknown_messages,
  substr(sha256(concat_ws(chr(10), project, agent_jobs.path, epoch_ms(planned_at))), 1, 12) AS reference
FROM agent_jobs
LEFT JOIN pull_requests ON pull_requests.job = agent_jobs.id
LEFT JOIN
  (
    SELECT job, count(*) AS messages, count(*) FILTER (state = 'unknown') AS unknown_messages
    FROM agent_messages
    GROUP BY job
  ) AS sent
  ON sent.job = agent_jobs.id;

COMMENT ON VIEW jobs IS 'Agent jobs with their states and pull requests, but not their prompts. One row per job.';
COMMENT ON COLUMN jobs.id IS 'Job number in Readership, as used by readership jobs show';
COMMENT ON COLUMN jobs.project IS 'Project id on the platform';
COMMENT ON COLUMN jobs.path IS 'Page to improve';
COMMENT ON COLUMN jobs.state IS 'planned, sending, active, completed, failed, archived, unknown or refused';
COMMENT ON COLUMN jobs.remote_status IS 'Latest status reported by the platform';
COMMENT ON COLUMN jobs.pr_link IS 'Pull request opened by the agent; NULL if there is none';
COMMENT ON COLUMN jobs.reason IS 'Why the page was selected';
COMMENT ON COLUMN jobs.planned_at IS 'When the job was planned (UTC)';
COMMENT ON COLUMN jobs.submitted_at IS 'When the intent to submit it was committed (UTC)';
COMMENT ON COLUMN jobs.ended_at IS 'When it was first seen as completed, failed or archived, or was refused (UTC)';
COMMENT ON COLUMN jobs.remote_id IS 'Job id on the platform';
COMMENT ON COLUMN jobs.note IS 'Error from the platform or the network, if something went wrong';
COMMENT ON COLUMN jobs.merged_on IS 'Day (UTC) its pull request was merged, recorded with readership jobs settle or found at the code host; NULL if unknown';
COMMENT ON COLUMN jobs.closed_on IS 'Day (UTC) its pull request was closed without being merged; NULL if it was not, or if pullRequests is off';
COMMENT ON COLUMN jobs.pull_request IS 'open, merged, closed, merged elsewhere (into another branch, so it is not a merge yet) or unknown (it could not be looked up); without pullRequests, as recorded by hand, and open until then. NULL if there is none';
COMMENT ON COLUMN jobs.merged_into IS 'Branch it was merged into, if that is neither the branch the agent began with nor the default branch; NULL otherwise';
COMMENT ON COLUMN jobs.pull_request_problem IS 'Why it could not be looked up; NULL if it could';
COMMENT ON COLUMN jobs.weekly_human IS 'Human views in a typical week when the page was selected: the median, by all views, of the last eight full weeks';
COMMENT ON COLUMN jobs.weekly_ai IS 'AI views in that week';
COMMENT ON COLUMN jobs.trend IS 'Relative change in median weekly views from the older half of those weeks to the newer half; NULL if that of the older half is 0, or the notes have a break in between';
COMMENT ON COLUMN jobs.messages IS 'Number of follow-up messages planned for it';
COMMENT ON COLUMN jobs.unknown_messages IS 'Number of messages whose reply was lost: the agent may have received them';
COMMENT ON COLUMN jobs.reference IS 'Identifies the job in its prompt and its pull request';
