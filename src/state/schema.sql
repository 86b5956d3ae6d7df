-- The state: what Readership did and decided. Times are ISO 8601 in UTC, days are YYYY-MM-DD.

-- Grain: one row.
CREATE TABLE workspace (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  id TEXT NOT NULL,
  -- The place that sends: see `placeOf`.
  machine TEXT NOT NULL,
  host TEXT NOT NULL,
  path TEXT NOT NULL,
  -- The number of the last attempt to send something.
  attempt INTEGER NOT NULL DEFAULT 0,
  attempted_at TEXT,
  -- Counts changes to jobs, messages, pull requests, emails and skips: see the triggers below.
  changes INTEGER NOT NULL DEFAULT 0,
  -- The device on which locks were found to work.
  locks_work_on TEXT,
  -- The version of the Parquet dataset that was last finished, with publish.then: a digest.
  dataset TEXT,
  -- What identifies the history that was last written; NULL before there was one.
  history TEXT
) STRICT;

-- Grain: one row. The worker with the highest token may load and send.
CREATE TABLE worker (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  token INTEGER NOT NULL,
  pid INTEGER,
  command TEXT,
  since TEXT
) STRICT;

-- Grain: one row per job that was ever planned for a page.
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY,
  reference TEXT NOT NULL UNIQUE,
  project TEXT NOT NULL,
  path TEXT NOT NULL,
  state TEXT NOT NULL CHECK (
    state IN ('planned', 'sending', 'active', 'completed', 'failed', 'archived', 'unknown', 'refused')
  ),
  -- Whether a person approved the page, so that the job is sent in every mode.
  is_approved INTEGER NOT NULL DEFAULT 0 CHECK (is_approved IN (0, 1)),
  reason TEXT NOT NULL,
  prompt TEXT NOT NULL,
  planned_at TEXT NOT NULL,
  attempt INTEGER UNIQUE,
  submitted_at TEXT,
  remote_id TEXT,
  remote_status TEXT,
  pr_link TEXT,
  model TEXT,
  repository TEXT,
  ref TEXT,
  polls INTEGER NOT NULL DEFAULT 0,
  next_poll_at TEXT,
  ended_at TEXT,
  note TEXT,
  merged_on TEXT,
  weekly_human REAL NOT NULL,
  weekly_ai REAL NOT NULL,
  trend REAL,
  -- A JSON list of week, human and ai.
  weeks TEXT NOT NULL
) STRICT;

CREATE INDEX jobs_of_project ON jobs (project, state);

-- Grain: one row per follow-up message ever planned for a job.
CREATE TABLE messages (
  id INTEGER PRIMARY KEY,
  reference TEXT NOT NULL UNIQUE,
  job INTEGER NOT NULL REFERENCES jobs (id),
  state TEXT NOT NULL CHECK (state IN ('planned', 'sending', 'sent', 'unknown', 'refused')),
  origin TEXT NOT NULL CHECK (origin IN ('typed', 'askWhenNoChange')),
  prompt TEXT NOT NULL,
  planned_at TEXT NOT NULL,
  attempt INTEGER UNIQUE,
  submitted_at TEXT,
  note TEXT
) STRICT;

CREATE INDEX messages_of_job ON messages (job);

-- Grain: one row per change of state of a job, or of one of its messages.
CREATE TABLE job_changes (
  job INTEGER NOT NULL REFERENCES jobs (id),
  message INTEGER REFERENCES messages (id),
  changed_at TEXT NOT NULL,
  from_state TEXT,
  to_state TEXT NOT NULL,
  cause TEXT NOT NULL
) STRICT;

CREATE INDEX changes_of_job ON job_changes (job);

-- Grain: one row per job whose pull request was looked up at its code host.
CREATE TABLE pull_requests (
  job INTEGER PRIMARY KEY REFERENCES jobs (id),
  checked_at TEXT NOT NULL,
  next_check_at TEXT NOT NULL,
  closed_on TEXT,
  merged_into TEXT,
  problem TEXT
) STRICT;

-- Grain: one row per time the platform asked not to be sent prompts for a while.
CREATE TABLE prompt_pauses (
  project TEXT NOT NULL,
  paused_at TEXT NOT NULL,
  paused_until TEXT NOT NULL,
  cause TEXT NOT NULL
) STRICT;

-- Grain: one row per project and page considered in the latest selection. The reason is a code, with facts as JSON.
CREATE TABLE choices (
  project TEXT NOT NULL,
  path TEXT NOT NULL,
  chosen_at TEXT NOT NULL,
  is_flagged INTEGER NOT NULL CHECK (is_flagged IN (0, 1)),
  code TEXT NOT NULL,
  facts TEXT NOT NULL,
  weekly_human REAL NOT NULL,
  weekly_ai REAL NOT NULL,
  PRIMARY KEY (project, path)
) STRICT;

-- Grain: one row per project and page that a person skipped.
CREATE TABLE skips (
  project TEXT NOT NULL,
  path TEXT NOT NULL,
  skipped_at TEXT NOT NULL,
  skipped_until TEXT,
  PRIMARY KEY (project, path)
) STRICT;

-- Grain: one row per report, project, period and recipient. Channels are recipients.
CREATE TABLE emails (
  report TEXT NOT NULL,
  project TEXT NOT NULL,
  period TEXT NOT NULL,
  -- Addresses are compared without case.
  recipient TEXT NOT NULL COLLATE NOCASE,
  state TEXT NOT NULL CHECK (state IN ('sending', 'sent', 'written', 'waiting', 'failed', 'unknown')),
  via TEXT NOT NULL,
  message_id TEXT NOT NULL,
  attempt INTEGER NOT NULL UNIQUE,
  attempts INTEGER NOT NULL,
  tried_at TEXT NOT NULL,
  settled_at TEXT,
  next_attempt_at TEXT,
  note TEXT,
  days_covered INTEGER,
  human INTEGER,
  ai INTEGER,
  PRIMARY KEY (report, project, period, recipient)
) STRICT;

CREATE INDEX emails_of_period ON emails (report, period, recipient);

-- Grain: one row per project and note of notes.yaml that concerns it.
CREATE TABLE notes (
  project TEXT NOT NULL,
  day TEXT NOT NULL,
  text TEXT NOT NULL,
  path TEXT NOT NULL,
  is_break INTEGER NOT NULL CHECK (is_break IN (0, 1))
) STRICT;

-- Grain: one row per execution of a step.
CREATE TABLE runs (
  run TEXT NOT NULL,
  step TEXT NOT NULL,
  started_at TEXT NOT NULL,
  ended_at TEXT,
  outcome TEXT NOT NULL CHECK (outcome IN ('running', 'done', 'failed', 'later', 'interrupted')),
  summary TEXT,
  resume_at TEXT
) STRICT;

CREATE INDEX runs_of_step ON runs (step, started_at);

-- Grain: one row per project and day whose last attempt to load it failed.
CREATE TABLE day_failures (
  project TEXT NOT NULL,
  day TEXT NOT NULL,
  attempted_at TEXT NOT NULL,
  failure TEXT NOT NULL,
  -- Attempts in a row that failed.
  failures INTEGER NOT NULL,
  PRIMARY KEY (project, day)
) STRICT;

-- Grain: one row per page read so far of a long day.
CREATE TABLE kept_pages (
  project TEXT NOT NULL,
  day TEXT NOT NULL,
  page_offset INTEGER NOT NULL,
  response TEXT NOT NULL,
  PRIMARY KEY (project, day, page_offset)
) STRICT;

-- Grain: one row per API key and minute in which requests for views were sent; kept for a month.
CREATE TABLE requests (
  key TEXT NOT NULL,
  minute TEXT NOT NULL,
  requests INTEGER NOT NULL,
  -- How many of them the platform refused for now.
  refused INTEGER NOT NULL,
  PRIMARY KEY (key, minute)
) STRICT;

-- Grain: one row per API key whose requests for views the platform refused.
CREATE TABLE request_limits (
  key TEXT PRIMARY KEY,
  -- The first and the last refusal without an accepted request in between, and when requests are sent again; NULL once
  -- requests are accepted again.
  refused_since TEXT,
  refused_at TEXT,
  paused_until TEXT,
  -- Requests an hour; NULL until a long pause is over.
  learned_limit INTEGER,
  learned_at TEXT
) STRICT;

-- Grain: one row per project and fact that was learned about the platform, as JSON.
CREATE TABLE platform_facts (
  project TEXT NOT NULL,
  fact TEXT NOT NULL,
  value TEXT NOT NULL,
  found_at TEXT NOT NULL,
  PRIMARY KEY (project, fact)
) STRICT;

-- Grain: one row per time that stored days were compared with the totals of the platform.
CREATE TABLE verifications (
  project TEXT NOT NULL,
  verified_at TEXT NOT NULL,
  first_day TEXT NOT NULL,
  last_day TEXT NOT NULL,
  days_differing INTEGER NOT NULL
) STRICT;

-- Grain: one row per project: what is known of its stored days, as JSON, while the history has this stamp.
CREATE TABLE known_days (
  project TEXT PRIMARY KEY,
  stamp TEXT NOT NULL,
  days TEXT NOT NULL
) STRICT;

-- Grain: one row per step: what its last result depended on, and until when it is right while nothing of that changes.
CREATE TABLE step_results (
  step TEXT PRIMARY KEY,
  basis TEXT NOT NULL,
  -- Of `workspace.changes`, for a step that depends on them.
  changes INTEGER,
  stored_at TEXT NOT NULL,
  due_at TEXT NOT NULL
) STRICT;

-- A day that failed, or that was found to differ, is to be loaded again.
CREATE TRIGGER day_failed AFTER INSERT ON day_failures
BEGIN
  DELETE FROM step_results WHERE step = 'export';
END;

-- Every change to jobs, messages, pull requests, emails and skips counts, but for polls that find nothing new.
CREATE TRIGGER jobs_added AFTER INSERT ON jobs
BEGIN
  UPDATE workspace SET changes = changes + 1;
END;

CREATE TRIGGER jobs_changed AFTER UPDATE ON jobs
WHEN
  (
    old.state, old.is_approved, old.prompt, old.submitted_at, old.remote_id, old.remote_status, old.pr_link, old.model,
    old.repository, old.ref, old.ended_at, old.note, old.merged_on
  )
  IS NOT (
    new.state, new.is_approved, new.prompt, new.submitted_at, new.remote_id, new.remote_status, new.pr_link, new.model,
    new.repository, new.ref, new.ended_at, new.note, new.merged_on
  )
BEGIN
  UPDATE workspace SET changes = changes + 1;
END;

CREATE TRIGGER messages_added AFTER INSERT ON messages
BEGIN
  UPDATE workspace SET changes = changes + 1;
END;

CREATE TRIGGER messages_changed AFTER UPDATE ON messages
BEGIN
  UPDATE workspace SET changes = changes + 1;
END;

CREATE TRIGGER pull_requests_added AFTER INSERT ON pull_requests
BEGIN
  UPDATE workspace SET changes = changes + 1;
END;

CREATE TRIGGER pull_requests_changed AFTER UPDATE ON pull_requests
WHEN (old.closed_on, old.merged_into, old.problem) IS NOT (new.closed_on, new.merged_into, new.problem)
BEGIN
  UPDATE workspace SET changes = changes + 1;
END;

CREATE TRIGGER pull_requests_removed AFTER DELETE ON pull_requests
BEGIN
  UPDATE workspace SET changes = changes + 1;
END;

CREATE TRIGGER emails_added AFTER INSERT ON emails
BEGIN
  UPDATE workspace SET changes = changes + 1;
END;

CREATE TRIGGER emails_changed AFTER UPDATE ON emails
BEGIN
  UPDATE workspace SET changes = changes + 1;
END;

CREATE TRIGGER emails_removed AFTER DELETE ON emails
BEGIN
  UPDATE workspace SET changes = changes + 1;
END;

CREATE TRIGGER skips_added AFTER INSERT ON skips
BEGIN
  UPDATE workspace SET changes = changes + 1;
END;

CREATE TRIGGER skips_changed AFTER UPDATE ON skips
BEGIN
  UPDATE workspace SET changes = changes + 1;
END;

CREATE TRIGGER skips_removed AFTER DELETE ON skips
BEGIN
  UPDATE workspace SET changes = changes + 1;
END;
