CREATE SCHEMA IF NOT EXISTS internal;

-- Grain: one row: the state as of when this file was written. `database` is a SQLite file.
CREATE OR REPLACE TABLE internal.saved_state (
  workspace VARCHAR NOT NULL,
  attempt BIGINT NOT NULL,
  database BLOB NOT NULL
);
