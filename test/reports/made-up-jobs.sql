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

DROP TABLE jobs;

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
