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
  note VARCHAR,
  weekly_human DOUBLE,
  weekly_ai DOUBLE,
  human_rank INTEGER,
  ai_rank INTEGER,
  ai_per_human DOUBLE,
  trend DOUBLE,
  weeks STRUCT(week DATE, human BIGINT, ai BIGINT)[],
  merged_on DATE
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
COMMENT ON COLUMN agent_jobs.weekly_human IS 'Median weekly human views over the weeks the choice rests on';
COMMENT ON COLUMN agent_jobs.weekly_ai IS 'Median weekly AI views over the weeks the choice rests on';
COMMENT ON COLUMN agent_jobs.human_rank IS 'Place of the page among all pages by median weekly human views, 1 the most read';
COMMENT ON COLUMN agent_jobs.ai_rank IS 'Place of the page among all pages by median weekly AI views, 1 the most read';
COMMENT ON COLUMN agent_jobs.ai_per_human IS 'AI views for each human view over those weeks; NULL without human views';
COMMENT ON COLUMN agent_jobs.trend IS 'Average weekly views of the newer half of those weeks against the older half, as a ratio of change: 0.1 is 10% more; NULL without views before';
COMMENT ON COLUMN agent_jobs.weeks IS 'Those weeks, oldest first, with the views of the page';
COMMENT ON COLUMN agent_jobs.merged_on IS 'Day (UTC) its pull request was merged, as readership jobs merged was told; NULL when nobody said';

-- Grain: one row per change of state of a job.
CREATE TABLE job_transitions (
  job INTEGER NOT NULL,
  changed_at TIMESTAMP NOT NULL,
  from_state VARCHAR,
  to_state VARCHAR NOT NULL,
  cause VARCHAR NOT NULL,
  message INTEGER,
  number INTEGER
);

COMMENT ON TABLE job_transitions IS 'How each job got to its state. One row per change of state.';
COMMENT ON COLUMN job_transitions.job IS 'Number of the job here';
COMMENT ON COLUMN job_transitions.changed_at IS 'When (UTC)';
COMMENT ON COLUMN job_transitions.from_state IS 'State before; NULL for the first';
COMMENT ON COLUMN job_transitions.to_state IS 'State after';
COMMENT ON COLUMN job_transitions.cause IS 'What happened, in words';
COMMENT ON COLUMN job_transitions.message IS 'Number of the follow-up message that changed its state; NULL when the job itself did';
COMMENT ON COLUMN job_transitions.number IS 'Place in the history of the job, from 1';

-- Grain: one row per follow-up message ever intended for a job.
CREATE TABLE agent_messages (
  id INTEGER NOT NULL,
  job INTEGER NOT NULL,
  state VARCHAR NOT NULL CHECK (state IN ('planned', 'submitting', 'sent', 'unconfirmed', 'refused')),
  origin VARCHAR NOT NULL CHECK (origin IN ('typed', 'askWhenNoChange')),
  prompt VARCHAR NOT NULL,
  planned_at TIMESTAMP NOT NULL,
  submitted_at TIMESTAMP,
  note VARCHAR
);

COMMENT ON TABLE agent_messages IS 'Follow-up messages to agent jobs. One row per message ever intended.';
COMMENT ON COLUMN agent_messages.id IS 'Number of the message';
COMMENT ON COLUMN agent_messages.job IS 'Number of the job here';
COMMENT ON COLUMN agent_messages.state IS 'planned, submitting, sent, unconfirmed (the reply was lost: the agent may have it) or refused (the platform said no)';
COMMENT ON COLUMN agent_messages.origin IS 'typed (somebody wrote it) or askWhenNoChange (the rule of that name did)';
COMMENT ON COLUMN agent_messages.prompt IS 'Exact text sent to the agent';
COMMENT ON COLUMN agent_messages.planned_at IS 'When the message was recorded (UTC)';
COMMENT ON COLUMN agent_messages.submitted_at IS 'When the intent to send it was committed (UTC), before it was sent';
COMMENT ON COLUMN agent_messages.note IS 'What the platform or the network said, when something went wrong';

-- Grain: one row per time the platform asked not to be sent prompts for a while.
CREATE TABLE agent_pauses (
  project VARCHAR NOT NULL,
  paused_at TIMESTAMP NOT NULL,
  paused_until TIMESTAMP NOT NULL,
  cause VARCHAR NOT NULL
);

COMMENT ON TABLE agent_pauses IS 'Times the platform asked not to be sent prompts (429, or 503 with Retry-After). One row per time.';
COMMENT ON COLUMN agent_pauses.project IS 'Project id on the platform';
COMMENT ON COLUMN agent_pauses.paused_at IS 'When it asked (UTC)';
COMMENT ON COLUMN agent_pauses.paused_until IS 'No prompt is sent before this (UTC)';
COMMENT ON COLUMN agent_pauses.cause IS 'Its words';

-- Grain: one row per project and page of the latest choice of pages; pages too little read to be considered have none.
CREATE TABLE page_choices (
  project VARCHAR NOT NULL,
  path VARCHAR NOT NULL,
  chosen_at TIMESTAMP NOT NULL,
  is_flagged BOOLEAN NOT NULL,
  why VARCHAR NOT NULL,
  weekly_human DOUBLE NOT NULL,
  weekly_ai DOUBLE NOT NULL
);

COMMENT ON TABLE page_choices IS 'What the latest run of improve decided: pages that deserve an agent, and pages left out. One row per project and page considered.';
COMMENT ON COLUMN page_choices.project IS 'Project id on the platform';
COMMENT ON COLUMN page_choices.path IS 'Path of the page';
COMMENT ON COLUMN page_choices.chosen_at IS 'When this choice was first made (UTC): one that comes out the same again is not stored again';
COMMENT ON COLUMN page_choices.is_flagged IS 'Whether the page deserves an agent now';
COMMENT ON COLUMN page_choices.why IS 'Why it does, or why it was left out, in words';
COMMENT ON COLUMN page_choices.weekly_human IS 'Median weekly human views over the last whole weeks, 8 at most';
COMMENT ON COLUMN page_choices.weekly_ai IS 'Median weekly AI views over the last whole weeks, 8 at most';
