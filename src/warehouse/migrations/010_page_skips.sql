-- Grain: one row per project and page that a person skipped.
CREATE TABLE page_skips (
  project VARCHAR NOT NULL,
  path VARCHAR NOT NULL,
  skipped_at TIMESTAMP NOT NULL,
  skipped_until DATE
);

COMMENT ON TABLE page_skips IS 'Pages that a person chose to skip; improve does not flag them. One row per project and page.';
COMMENT ON COLUMN page_skips.project IS 'Project id on the platform';
COMMENT ON COLUMN page_skips.path IS 'Path of the page';
COMMENT ON COLUMN page_skips.skipped_at IS 'When it was skipped (UTC)';
COMMENT ON COLUMN page_skips.skipped_until IS 'Day (UTC) from which it may be flagged again; NULL if only readership improve --unskip ends it';
