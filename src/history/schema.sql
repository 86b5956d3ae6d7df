-- Grain: one row, the version of these tables.
CREATE SCHEMA internal;

CREATE TABLE internal.version (version INTEGER NOT NULL, descriptions VARCHAR NOT NULL);

-- Grain: one row: the state as of when this file was written. `database` is a SQLite file.
CREATE TABLE internal.saved_state (
  workspace VARCHAR NOT NULL,
  attempt BIGINT NOT NULL,
  changes BIGINT NOT NULL,
  database BLOB NOT NULL
);

-- Grain: one row per project.
CREATE TABLE internal.projects (project_id INTEGER NOT NULL, project VARCHAR NOT NULL);

-- Grain: one row per project and path that was ever viewed. Unique by construction. No index: it would double the time of a
-- load and the size of the file.
CREATE TABLE internal.paths (
  path_id INTEGER NOT NULL,
  project_id INTEGER NOT NULL,
  path VARCHAR NOT NULL,
  page VARCHAR NOT NULL
);

-- Grain: one row per project, day and path that was viewed that day. A day is replaced whole.
CREATE TABLE internal.counts (
  project_id INTEGER NOT NULL,
  day DATE NOT NULL,
  path_id INTEGER NOT NULL,
  human BIGINT NOT NULL,
  ai BIGINT NOT NULL,
  total BIGINT NOT NULL
);

-- Grain: one row per project and stored day. A day without a row was never loaded.
CREATE TABLE days (
  project VARCHAR NOT NULL,
  day DATE NOT NULL,
  state VARCHAR NOT NULL CHECK (state IN ('provisional', 'final', 'inconsistent')),
  first_loaded_at TIMESTAMP NOT NULL,
  loaded_at TIMESTAMP NOT NULL,
  checked_at TIMESTAMP NOT NULL,
  human BIGINT NOT NULL,
  ai BIGINT NOT NULL,
  total BIGINT NOT NULL,
  pages BIGINT NOT NULL,
  unattributed_human BIGINT NOT NULL,
  unattributed_ai BIGINT NOT NULL,
  unattributed_total BIGINT NOT NULL,
  problem VARCHAR,
  nights_in_doubt INTEGER NOT NULL
);

-- Grain: one row per time that a stored day was found changed by a later load.
CREATE TABLE restatements (
  project VARCHAR NOT NULL,
  day DATE NOT NULL,
  restated_at TIMESTAMP NOT NULL,
  checked_before TIMESTAMP NOT NULL,
  human_before BIGINT NOT NULL,
  human_after BIGINT NOT NULL,
  ai_before BIGINT NOT NULL,
  ai_after BIGINT NOT NULL,
  total_before BIGINT NOT NULL,
  total_after BIGINT NOT NULL,
  pages_changed BIGINT NOT NULL
);

-- What follows are copies of tables of the state, as of when this file was written. The state has their constraints.

-- Grain: one row per job that was ever planned for a page.
CREATE TABLE jobs (
  id INTEGER,
  project VARCHAR,
  path VARCHAR,
  state VARCHAR,
  remote_status VARCHAR,
  pr_link VARCHAR,
  reason VARCHAR,
  planned_at TIMESTAMP,
  submitted_at TIMESTAMP,
  ended_at TIMESTAMP,
  remote_id VARCHAR,
  note VARCHAR,
  merged_on DATE,
  closed_on DATE,
  pull_request VARCHAR,
  merged_into VARCHAR,
  pull_request_problem VARCHAR,
  weekly_human DOUBLE,
  weekly_ai DOUBLE,
  trend DOUBLE,
  messages INTEGER,
  unknown_messages INTEGER,
  reference VARCHAR
);

-- Grain: one row per project and page considered in the latest selection. The reason is a code, with facts as JSON.
CREATE TABLE choices (
  project VARCHAR,
  path VARCHAR,
  chosen_at TIMESTAMP,
  is_flagged BOOLEAN,
  code VARCHAR,
  facts VARCHAR,
  weekly_human DOUBLE,
  weekly_ai DOUBLE
);

-- Grain: one row per project and page that a person skipped.
CREATE TABLE skips (
  project VARCHAR,
  path VARCHAR,
  skipped_at TIMESTAMP,
  skipped_until DATE
);

-- Grain: one row per report, project, period and recipient. Channels are recipients.
CREATE TABLE emails (
  report VARCHAR,
  project VARCHAR,
  period VARCHAR,
  recipient VARCHAR,
  state VARCHAR,
  via VARCHAR,
  message_id VARCHAR,
  attempts INTEGER,
  tried_at TIMESTAMP,
  settled_at TIMESTAMP,
  next_attempt_at TIMESTAMP,
  note VARCHAR,
  days_covered INTEGER,
  human BIGINT,
  ai BIGINT
);

-- Grain: one row per project and note of notes.yaml that concerns it.
CREATE TABLE notes (
  project VARCHAR,
  day DATE,
  text VARCHAR,
  path VARCHAR,
  is_break BOOLEAN
);

-- Grain: one row per execution of a step.
CREATE TABLE runs (
  run VARCHAR,
  step VARCHAR,
  started_at TIMESTAMP,
  ended_at TIMESTAMP,
  outcome VARCHAR,
  summary VARCHAR,
  resume_at TIMESTAMP
);

-- Grain: one row per project and day whose last attempt to load it failed.
CREATE TABLE day_failures (
  project VARCHAR,
  day DATE,
  attempted_at TIMESTAMP,
  failure VARCHAR,
  failures INTEGER
);

-- Grain: one row per project whose first day with views is known.
CREATE TABLE first_days (project VARCHAR, day DATE);
