-- Grain: one row per table and month of the lake.
CREATE TABLE lake_months (
  dataset VARCHAR NOT NULL,
  month VARCHAR NOT NULL,
  fingerprint VARCHAR NOT NULL,
  digest VARCHAR NOT NULL,
  hashed_at TIMESTAMP NOT NULL,
  files VARCHAR
);

COMMENT ON TABLE lake_months IS 'Digests of the months of the lake, so that months without changes are not read again. One row per table and month.';
COMMENT ON COLUMN lake_months.dataset IS 'Table of the lake: views or days';
COMMENT ON COLUMN lake_months.month IS 'Month, such as 2026-11';
COMMENT ON COLUMN lake_months.fingerprint IS 'Digest of the days and restatements from which it follows whether rows changed';
COMMENT ON COLUMN lake_months.digest IS 'Digest of the rows; empty if there are none';
COMMENT ON COLUMN lake_months.hashed_at IS 'When the rows were last read for the digest (UTC)';
COMMENT ON COLUMN lake_months.files IS 'Names of the files in which these rows were last found in the lake';
