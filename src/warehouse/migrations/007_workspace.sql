-- Grain: one row, created when the live database is first used.
CREATE TABLE workspace (id VARCHAR NOT NULL, lake VARCHAR);

COMMENT ON TABLE workspace IS 'Which workspace this is, so that a lake or journal of another one is refused. One row.';
COMMENT ON COLUMN workspace.id IS 'Random id, created with the workspace and kept by its copies';
COMMENT ON COLUMN workspace.lake IS 'Where the lake was last published; NULL if it never was';
