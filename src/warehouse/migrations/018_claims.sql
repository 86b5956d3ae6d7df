ALTER TABLE workspace ADD COLUMN lakes VARCHAR[];

-- DuckDB cannot commit an UPDATE of a table that the same transaction alters.
ALTER TABLE workspace ALTER COLUMN lakes TYPE VARCHAR[] USING CASE WHEN lake IS NOT NULL THEN [lake] END;

ALTER TABLE workspace ADD COLUMN claim BIGINT DEFAULT 0;

ALTER TABLE workspace ADD COLUMN claim_after BIGINT DEFAULT 0;

ALTER TABLE workspace ADD COLUMN claim_needed BIGINT DEFAULT 0;

ALTER TABLE workspace ADD COLUMN claim_needed_at TIMESTAMP;

COMMENT ON COLUMN workspace.lakes IS 'Lakes it was published to, the latest last';
COMMENT ON COLUMN workspace.claim IS 'Number of the last command that sent something while a lake was configured; numbers only grow';
COMMENT ON COLUMN workspace.claim_after IS 'Number that the lake had before that';
COMMENT ON COLUMN workspace.claim_needed IS 'Number in the lake that this database was restored from; it sends only if it knows that number';
COMMENT ON COLUMN workspace.claim_needed_at IS 'When that lake was last known to send or publish (UTC)';
