-- Grain: one row per job that was ever intended for a page.
CREATE TABLE agent_jobs (
  id INTEGER NOT NULL,
  project VARCHAR NOT NULL,
  path VARCHAR NOT NULL,
  state VARCHAR NOT NULL CHECK (
    state IN ('planned', 'submitting', 'active', 'completed', 'failed', 'archived', 'unconfirmed', 'refused')
  ),
  reason VARCHAR NOT NULL,
  prompt VARCHAR NOT NULL,
  planned_at TIMESTAMP NOT NULL,
  submitted_at TIMESTAMP,
  remote_id VARCHAR,
  remote_status VARCHAR,
  pr_link VARCHAR,
  model VARCHAR,
  repository VARCHAR,
  ref VARCHAR,
  polls INTEGER NOT NULL,
  next_poll_at TIMESTAMP,
  ended_at TIMESTAMP,
  note VARCHAR
);

COMMENT ON TABLE agent_jobs IS 'Agent jobs, from the intent to the pull request. One row per job ever intended for a page.';
COMMENT ON COLUMN agent_jobs.id IS 'Number of the job here, as in readership jobs show';
COMMENT ON COLUMN agent_jobs.project IS 'Project id on the platform';
COMMENT ON COLUMN agent_jobs.path IS 'Page that the job is to improve';
COMMENT ON COLUMN agent_jobs.state IS 'planned, submitting, active, completed, failed, archived, unconfirmed (the reply was lost: it may exist on the platform) or refused (the platform said no)';
COMMENT ON COLUMN agent_jobs.reason IS 'Why the page was chosen, in words';
COMMENT ON COLUMN agent_jobs.prompt IS 'Exact instruction sent to the agent';
COMMENT ON COLUMN agent_jobs.planned_at IS 'When the job was planned (UTC)';
COMMENT ON COLUMN agent_jobs.submitted_at IS 'When the intent to send it was committed (UTC), before it was sent';
COMMENT ON COLUMN agent_jobs.remote_id IS 'Id of the job on the platform';
COMMENT ON COLUMN agent_jobs.remote_status IS 'Status in the words of the platform, as last seen';
COMMENT ON COLUMN agent_jobs.pr_link IS 'Pull request that the agent opened; NULL when there is none';
COMMENT ON COLUMN agent_jobs.model IS 'AI model that works on the job';
COMMENT ON COLUMN agent_jobs.repository IS 'Source repository';
COMMENT ON COLUMN agent_jobs.ref IS 'Source reference, such as a branch';
COMMENT ON COLUMN agent_jobs.polls IS 'How often the platform was asked for its status since it was last active';
COMMENT ON COLUMN agent_jobs.next_poll_at IS 'When to ask again (UTC)';
COMMENT ON COLUMN agent_jobs.ended_at IS 'When it was first seen completed, failed or archived, or was refused (UTC)';
COMMENT ON COLUMN agent_jobs.note IS 'What the platform or the network said, when something went wrong';

-- Grain: one row per change of state of a job.
CREATE TABLE job_transitions (
  job INTEGER NOT NULL,
  changed_at TIMESTAMP NOT NULL,
  from_state VARCHAR,
  to_state VARCHAR NOT NULL,
  cause VARCHAR NOT NULL
);

COMMENT ON TABLE job_transitions IS 'How each job got to its state. One row per change of state.';
COMMENT ON COLUMN job_transitions.job IS 'Number of the job here';
COMMENT ON COLUMN job_transitions.changed_at IS 'When (UTC)';
COMMENT ON COLUMN job_transitions.from_state IS 'State before; NULL for the first';
COMMENT ON COLUMN job_transitions.to_state IS 'State after';
COMMENT ON COLUMN job_transitions.cause IS 'What happened, in words';
