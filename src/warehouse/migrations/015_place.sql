ALTER TABLE workspace ADD COLUMN machine VARCHAR;

ALTER TABLE workspace ADD COLUMN host VARCHAR;

ALTER TABLE workspace ADD COLUMN path VARCHAR;

ALTER TABLE workspace ADD COLUMN publications INTEGER DEFAULT 0;

COMMENT ON COLUMN workspace.machine IS 'Machine from which it sends jobs, messages and emails: a digest of its id, or READERSHIP_MACHINE';
COMMENT ON COLUMN workspace.host IS 'Host name of that machine';
COMMENT ON COLUMN workspace.path IS 'Data directory from which it sends';
COMMENT ON COLUMN workspace.publications IS 'How often it was published to a lake';
