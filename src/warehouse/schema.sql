-- Grain: one row, the version of these tables.
CREATE TABLE schema_version (version INTEGER NOT NULL);

-- Grain: one row per project, day and path that was viewed that day. Unique by construction: a day is replaced whole.
-- No index: it would double the time of a load and the size of the file.
CREATE TABLE page_views (
  project VARCHAR NOT NULL,
  day DATE NOT NULL,
  path VARCHAR NOT NULL,
  page VARCHAR NOT NULL,
  human BIGINT NOT NULL,
  ai BIGINT NOT NULL,
  total BIGINT NOT NULL
);

-- Grain: one row per project and stored day. A day without a row was never loaded.
CREATE TABLE day_loads (
  project VARCHAR NOT NULL,
  day DATE NOT NULL,
  state VARCHAR NOT NULL CHECK (state IN ('provisional', 'final', 'inconsistent')),
  attempted_at TIMESTAMP NOT NULL,
  loaded_at TIMESTAMP NOT NULL,
  human BIGINT,
  ai BIGINT,
  total BIGINT,
  pages BIGINT,
  unattributed_human BIGINT,
  unattributed_ai BIGINT,
  unattributed_total BIGINT,
  failure VARCHAR,
  failures INTEGER DEFAULT 0
);

-- Grain: one row per project and day whose last attempt to load it failed.
CREATE TABLE day_failures (
  project VARCHAR NOT NULL,
  day DATE NOT NULL,
  attempted_at TIMESTAMP NOT NULL,
  failure VARCHAR NOT NULL,
  failures INTEGER NOT NULL
);

-- Grain: one row per time that a stored day was found changed by a later load.
CREATE TABLE restatements (
  project VARCHAR NOT NULL,
  day DATE NOT NULL,
  restated_at TIMESTAMP NOT NULL,
  human_before BIGINT NOT NULL,
  human_after BIGINT NOT NULL,
  ai_before BIGINT NOT NULL,
  ai_after BIGINT NOT NULL,
  total_before BIGINT NOT NULL,
  total_after BIGINT NOT NULL,
  pages_changed BIGINT NOT NULL
);

-- Grain: one row per execution of a step (export, improve, poll, report, publish).
CREATE TABLE runs (
  run VARCHAR NOT NULL,
  step VARCHAR NOT NULL,
  started_at TIMESTAMP NOT NULL,
  ended_at TIMESTAMP,
  outcome VARCHAR NOT NULL CHECK (outcome IN ('running', 'done', 'failed', 'later', 'interrupted')),
  summary VARCHAR,
  resume_at TIMESTAMP
);

-- Grain: one row per job that was ever intended for a page.
CREATE TABLE agent_jobs (
  id INTEGER NOT NULL,
  project VARCHAR NOT NULL,
  path VARCHAR NOT NULL,
  state VARCHAR NOT NULL CHECK (
    state IN ('planned', 'sending', 'active', 'completed', 'failed', 'archived', 'unknown', 'refused')
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
  trend DOUBLE,
  weeks STRUCT(week DATE, human BIGINT, ai BIGINT)[],
  merged_on DATE
);

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

-- Grain: one row per follow-up message ever intended for a job.
CREATE TABLE agent_messages (
  id INTEGER NOT NULL,
  job INTEGER NOT NULL,
  state VARCHAR NOT NULL CHECK (state IN ('planned', 'sending', 'sent', 'unknown', 'refused')),
  origin VARCHAR NOT NULL CHECK (origin IN ('typed', 'askWhenNoChange')),
  prompt VARCHAR NOT NULL,
  planned_at TIMESTAMP NOT NULL,
  submitted_at TIMESTAMP,
  note VARCHAR
);

-- Grain: one row per time the platform asked not to be sent prompts for a while.
CREATE TABLE agent_pauses (
  project VARCHAR NOT NULL,
  paused_at TIMESTAMP NOT NULL,
  paused_until TIMESTAMP NOT NULL,
  cause VARCHAR NOT NULL
);

-- Grain: one row per project and page considered in the latest selection. The reason is a code, with
-- facts as JSON.
CREATE TABLE page_choices (
  project VARCHAR NOT NULL,
  path VARCHAR NOT NULL,
  chosen_at TIMESTAMP NOT NULL,
  is_flagged BOOLEAN NOT NULL,
  code VARCHAR NOT NULL,
  facts VARCHAR NOT NULL,
  weekly_human DOUBLE NOT NULL,
  weekly_ai DOUBLE NOT NULL
);

-- Grain: one row per report, project, period and recipient. Channels are recipients. A later email needs the numbers
-- that were sent.
CREATE TABLE deliveries (
  report VARCHAR NOT NULL,
  project VARCHAR NOT NULL,
  period VARCHAR NOT NULL,
  recipient VARCHAR NOT NULL,
  state VARCHAR NOT NULL CHECK (state IN ('sending', 'sent', 'waiting', 'failed', 'unknown')),
  via VARCHAR NOT NULL,
  message_id VARCHAR NOT NULL,
  attempts INTEGER NOT NULL,
  tried_at TIMESTAMP NOT NULL,
  settled_at TIMESTAMP,
  next_attempt_at TIMESTAMP,
  note VARCHAR,
  days_covered INTEGER,
  human BIGINT,
  ai BIGINT
);

-- Grain: one row per project and page that a person skipped.
CREATE TABLE page_skips (
  project VARCHAR NOT NULL,
  path VARCHAR NOT NULL,
  skipped_at TIMESTAMP NOT NULL,
  skipped_until DATE
);

-- Grain: one row per job whose pull request was looked up at its code host.
CREATE TABLE pull_requests (
  job INTEGER NOT NULL,
  checked_at TIMESTAMP NOT NULL,
  next_check_at TIMESTAMP NOT NULL,
  closed_on DATE,
  problem VARCHAR,
  merged_into VARCHAR
);

-- Grain: one row per project and note of notes.yaml that concerns it.
CREATE TABLE notes (
  project VARCHAR NOT NULL,
  day DATE NOT NULL,
  text VARCHAR NOT NULL,
  path VARCHAR NOT NULL,
  is_break BOOLEAN NOT NULL
);

-- Grain: one row per project and fact.
CREATE TABLE platform_facts (
  project VARCHAR NOT NULL,
  fact VARCHAR NOT NULL,
  value VARCHAR NOT NULL,
  found_at TIMESTAMP NOT NULL
);

-- Grain: one row per project and week whose movers were kept.
CREATE TABLE kept_movers (
  project VARCHAR NOT NULL,
  week DATE NOT NULL,
  inputs VARCHAR NOT NULL,
  movers STRUCT(
    project VARCHAR,
    path VARCHAR,
    audience VARCHAR,
    change DOUBLE,
    human BIGINT,
    human_expected DOUBLE,
    human_low DOUBLE,
    human_high DOUBLE,
    human_z DOUBLE,
    human_weeks STRUCT(week DATE, low DOUBLE, high DOUBLE)[],
    ai BIGINT,
    ai_expected DOUBLE,
    ai_low DOUBLE,
    ai_high DOUBLE,
    ai_z DOUBLE,
    ai_weeks STRUCT(week DATE, low DOUBLE, high DOUBLE)[],
    weeks_seen BIGINT
  )[] NOT NULL
);
