-- Only the end of the agents' own pull requests is looked up.
DROP VIEW IF EXISTS project_effects;

DROP TABLE page_changes;

DROP TABLE code_host_reads;

ALTER TABLE pull_requests ADD COLUMN merged_into VARCHAR;

COMMENT ON COLUMN pull_requests.merged_into IS 'Branch it was merged into, if that is neither the branch the agent began with nor the default branch; NULL otherwise';
