-- Grain: one row per agent job.
CREATE OR REPLACE VIEW jobs AS
SELECT
  id,
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
  weekly_human,
  weekly_ai,
  human_rank,
  ai_rank,
  ai_per_human,
  trend,
  coalesce(messages, 0) AS messages,
  coalesce(unconfirmed_messages, 0) AS unconfirmed_messages
FROM agent_jobs
LEFT JOIN
  (
    SELECT job, count(*) AS messages, count(*) FILTER (state = 'unconfirmed') AS unconfirmed_messages
    FROM agent_messages
    GROUP BY job
  ) AS sent
  ON sent.job = agent_jobs.id;

COMMENT ON VIEW jobs IS 'Agent jobs with their state and pull request, without the prompts. One row per job.';
COMMENT ON COLUMN jobs.id IS 'Number of the job here, as in readership jobs show';
COMMENT ON COLUMN jobs.project IS 'Project id on the platform';
COMMENT ON COLUMN jobs.path IS 'Page that the job is to improve';
COMMENT ON COLUMN jobs.state IS 'planned, submitting, active, completed, failed, archived, unconfirmed or refused';
COMMENT ON COLUMN jobs.remote_status IS 'Status in the words of the platform, as last seen';
COMMENT ON COLUMN jobs.pr_link IS 'Pull request that the agent opened; NULL when there is none';
COMMENT ON COLUMN jobs.reason IS 'Why the page was chosen, in words';
COMMENT ON COLUMN jobs.planned_at IS 'When the job was planned (UTC)';
COMMENT ON COLUMN jobs.submitted_at IS 'When the intent to send it was committed (UTC)';
COMMENT ON COLUMN jobs.ended_at IS 'When it was first seen completed, failed or archived, or was refused (UTC)';
COMMENT ON COLUMN jobs.remote_id IS 'Id of the job on the platform';
COMMENT ON COLUMN jobs.note IS 'What the platform or the network said, when something went wrong';
COMMENT ON COLUMN jobs.merged_on IS 'Day (UTC) its pull request was merged, as readership jobs merged was told; NULL when nobody said';
COMMENT ON COLUMN jobs.weekly_human IS 'Median weekly human views over the weeks the choice rests on';
COMMENT ON COLUMN jobs.weekly_ai IS 'Median weekly AI views over the weeks the choice rests on';
COMMENT ON COLUMN jobs.human_rank IS 'Place among all pages by median weekly human views, 1 the most read';
COMMENT ON COLUMN jobs.ai_rank IS 'Place among all pages by median weekly AI views, 1 the most read';
COMMENT ON COLUMN jobs.ai_per_human IS 'AI views for each human view over those weeks; NULL without human views';
COMMENT ON COLUMN jobs.trend IS 'Newer half of those weeks against the older, as a ratio of change; NULL without views before';
COMMENT ON COLUMN jobs.messages IS 'Follow-up messages ever intended for it';
COMMENT ON COLUMN jobs.unconfirmed_messages IS 'Those whose reply was lost: the agent may have them';
