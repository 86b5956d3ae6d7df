ALTER TABLE workspace ADD COLUMN dataset VARCHAR;
COMMENT ON COLUMN workspace.dataset IS 'Digest of the days that the Parquet dataset had when it was last brought up to date, and of its place';
