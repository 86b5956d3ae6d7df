-- Grain: one row per agent job.
CREATE OR REPLACE VIEW jobs AS
SELECT id, project, path, state, remote_status, pr_link, reason, planned_at, submitted_at, ended_at, remote_id, note
FROM agent_jobs;

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
