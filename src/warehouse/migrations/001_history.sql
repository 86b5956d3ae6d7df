-- Grain: one row per project, day and path that was viewed that day. Unique by construction: a day is replaced whole.
-- No index: it would double the time of a load and the size of the file.
CREATE TABLE page_views (
  project VARCHAR NOT NULL,
  day DATE NOT NULL,
  path VARCHAR NOT NULL,
  human BIGINT NOT NULL,
  ai BIGINT NOT NULL,
  total BIGINT NOT NULL
);

COMMENT ON TABLE page_views IS 'Views of each page on each day, as the platform reports them. One row per project, day and path.';
COMMENT ON COLUMN page_views.project IS 'Project id on the platform';
COMMENT ON COLUMN page_views.day IS 'Day (UTC) on which the views happened';
COMMENT ON COLUMN page_views.path IS 'Path of the page, exactly as the platform sent it: untrusted text';
COMMENT ON COLUMN page_views.human IS 'Views the platform attributes to people';
COMMENT ON COLUMN page_views.ai IS 'Views the platform attributes to AI agents and tools';
COMMENT ON COLUMN page_views.total IS 'Total views as sent by the platform; normally human + ai';

-- Grain: one row per project and day ever asked for. A day without a row was never loaded.
CREATE TABLE day_loads (
  project VARCHAR NOT NULL,
  day DATE NOT NULL,
  state VARCHAR NOT NULL CHECK (state IN ('provisional', 'final', 'inconsistent', 'failed')),
  attempted_at TIMESTAMP NOT NULL,
  loaded_at TIMESTAMP,
  human BIGINT,
  ai BIGINT,
  total BIGINT,
  pages BIGINT,
  unattributed_human BIGINT,
  unattributed_ai BIGINT,
  unattributed_total BIGINT,
  failure VARCHAR
);

COMMENT ON TABLE day_loads IS 'What is known of each day: whether it is stored, how far it can be trusted, and its totals. One row per project and day.';
COMMENT ON COLUMN day_loads.project IS 'Project id on the platform';
COMMENT ON COLUMN day_loads.day IS 'Day (UTC)';
COMMENT ON COLUMN day_loads.state IS 'provisional: loaded before it could settle; final: loaded after; inconsistent: rows moved while it was read, so it is read again; failed: the last attempt failed, and what an earlier one stored still stands';
COMMENT ON COLUMN day_loads.attempted_at IS 'When the day was last asked for (UTC)';
COMMENT ON COLUMN day_loads.loaded_at IS 'When the stored rows were loaded (UTC); NULL when nothing is stored';
COMMENT ON COLUMN day_loads.human IS 'Site total of human views, as sent with the stored rows';
COMMENT ON COLUMN day_loads.ai IS 'Site total of AI views, as sent with the stored rows';
COMMENT ON COLUMN day_loads.total IS 'Site total of views, as sent with the stored rows';
COMMENT ON COLUMN day_loads.pages IS 'Number of pages viewed, that is, rows stored for the day';
COMMENT ON COLUMN day_loads.unattributed_human IS 'Human views of the site total that no stored page accounts for; 0 when the day adds up';
COMMENT ON COLUMN day_loads.unattributed_ai IS 'AI views of the site total that no stored page accounts for; 0 when the day adds up';
COMMENT ON COLUMN day_loads.unattributed_total IS 'Views of the site total that no stored page accounts for; 0 when the day adds up';
COMMENT ON COLUMN day_loads.failure IS 'Why the last attempt failed or did not add up; NULL when it went well';

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

COMMENT ON TABLE restatements IS 'Changes that a later load found in a day already stored. One row per change.';
COMMENT ON COLUMN restatements.project IS 'Project id on the platform';
COMMENT ON COLUMN restatements.day IS 'Day (UTC) whose numbers changed';
COMMENT ON COLUMN restatements.restated_at IS 'When the change was stored (UTC)';
COMMENT ON COLUMN restatements.human_before IS 'Site total of human views before';
COMMENT ON COLUMN restatements.human_after IS 'Site total of human views after';
COMMENT ON COLUMN restatements.ai_before IS 'Site total of AI views before';
COMMENT ON COLUMN restatements.ai_after IS 'Site total of AI views after';
COMMENT ON COLUMN restatements.total_before IS 'Site total of views before';
COMMENT ON COLUMN restatements.total_after IS 'Site total of views after';
COMMENT ON COLUMN restatements.pages_changed IS 'Pages whose counts differ, new and vanished ones included';

-- Grain: one row per project whose first day with a view was looked for and found.
CREATE TABLE history_starts (project VARCHAR NOT NULL, first_day DATE NOT NULL, found_at TIMESTAMP NOT NULL);

COMMENT ON TABLE history_starts IS 'Where the history of each project begins, found by asking the platform once. One row per project.';
COMMENT ON COLUMN history_starts.project IS 'Project id on the platform';
COMMENT ON COLUMN history_starts.first_day IS 'First day (UTC) with a view';
COMMENT ON COLUMN history_starts.found_at IS 'When it was found (UTC)';
