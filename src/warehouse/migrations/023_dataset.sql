ALTER TABLE workspace ADD COLUMN dataset VARCHAR;
COMMENT ON COLUMN workspace.dataset IS 'Digest of the days that the Parquet dataset had when it was last brought up to date, and of its place';

ALTER TABLE workspace ADD COLUMN dataset_places VARCHAR[] DEFAULT [];
COMMENT ON COLUMN workspace.dataset_places IS 'Places of Parquet datasets that it has published to';
