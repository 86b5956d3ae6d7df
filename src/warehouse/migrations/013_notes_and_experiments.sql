-- Grain: one row per project and note of notes.yaml that concerns it.
CREATE TABLE notes (
  project VARCHAR NOT NULL,
  day DATE NOT NULL,
  text VARCHAR NOT NULL,
  path VARCHAR NOT NULL,
  is_break BOOLEAN NOT NULL
);

COMMENT ON TABLE notes IS 'What happened outside, from notes.yaml, as of the last publication. One row per note and project that it concerns.';
COMMENT ON COLUMN notes.project IS 'Project id on the platform';
COMMENT ON COLUMN notes.day IS 'Day (UTC) on which it happened';
COMMENT ON COLUMN notes.text IS 'What happened';
COMMENT ON COLUMN notes.path IS 'Pages that it concerns: a path, or a pattern for GLOB (page_views.path GLOB notes.path); * for the whole site';
COMMENT ON COLUMN notes.is_break IS 'Whether views are counted differently from this day on, so that they cannot be compared with earlier ones';

-- Grain: one row per page of each pair that chance decided.
CREATE TABLE experiment_pairs (
  project VARCHAR NOT NULL,
  pair INTEGER NOT NULL,
  drawn_at TIMESTAMP NOT NULL,
  seed VARCHAR NOT NULL,
  path VARCHAR NOT NULL,
  is_treated BOOLEAN NOT NULL,
  job_id INTEGER NOT NULL
);

COMMENT ON TABLE experiment_pairs IS 'Pairs of similar pages of which chance gave one a job, recorded with the job before it is sent. One row per page.';
COMMENT ON COLUMN experiment_pairs.project IS 'Project id on the platform';
COMMENT ON COLUMN experiment_pairs.pair IS 'Number of the pair';
COMMENT ON COLUMN experiment_pairs.drawn_at IS 'When it was drawn (UTC)';
COMMENT ON COLUMN experiment_pairs.seed IS 'Random text of the draw: with the two paths, it determines the result';
COMMENT ON COLUMN experiment_pairs.path IS 'Page';
COMMENT ON COLUMN experiment_pairs.is_treated IS 'Whether this page got the job; the other one is held out';
COMMENT ON COLUMN experiment_pairs.job_id IS 'Number of the job of the page that got one, the same in both rows';

-- Grain: one row per page and change by people or other agents.
CREATE TABLE page_changes (
  project VARCHAR NOT NULL,
  path VARCHAR NOT NULL,
  link VARCHAR,
  changed_on DATE
);

COMMENT ON TABLE page_changes IS 'Changes to pages by people or other agents: recorded with readership changed, or found in pull requests at the code host. One row per page and change.';
COMMENT ON COLUMN page_changes.project IS 'Project id on the platform';
COMMENT ON COLUMN page_changes.path IS 'Page';
COMMENT ON COLUMN page_changes.link IS 'Pull request; NULL if a person recorded the change';
COMMENT ON COLUMN page_changes.changed_on IS 'Day (UTC) of the change, or on which the pull request was merged; NULL while it is open';

-- Grain: one row per repository whose pull requests are read.
CREATE TABLE code_host_reads (
  repository VARCHAR NOT NULL,
  read_until TIMESTAMP NOT NULL,
  next_read_at TIMESTAMP NOT NULL,
  problem VARCHAR
);

COMMENT ON TABLE code_host_reads IS 'How far the pull requests of a repository were read, to find changes by others and lost jobs. One row per repository.';
COMMENT ON COLUMN code_host_reads.repository IS 'Repository, as in pullRequests.repository';
COMMENT ON COLUMN code_host_reads.read_until IS 'Pull requests that changed before this (UTC) have been read';
COMMENT ON COLUMN code_host_reads.next_read_at IS 'When to read on (UTC)';
COMMENT ON COLUMN code_host_reads.problem IS 'Why they could not be read; NULL if they could';
