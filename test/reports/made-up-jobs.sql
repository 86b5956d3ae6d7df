-- Tables from which tests make up jobs. The history has only the table jobs, which the state fills.
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

CREATE TABLE pull_requests (
  job INTEGER NOT NULL,
  checked_at TIMESTAMP NOT NULL,
  next_check_at TIMESTAMP NOT NULL,
  closed_on DATE,
  problem VARCHAR,
  merged_into VARCHAR
);
