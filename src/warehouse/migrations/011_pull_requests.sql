-- Grain: one row per job whose pull request was looked up at its code host.
CREATE TABLE pull_requests (
  job INTEGER NOT NULL,
  checked_at TIMESTAMP NOT NULL,
  next_check_at TIMESTAMP NOT NULL,
  closed_on DATE,
  problem VARCHAR
);

COMMENT ON TABLE pull_requests IS 'State of agents'' pull requests at the code host. One row per job whose pull request was looked up.';
COMMENT ON COLUMN pull_requests.job IS 'Job number in Readership';
COMMENT ON COLUMN pull_requests.checked_at IS 'When it was last looked up (UTC)';
COMMENT ON COLUMN pull_requests.next_check_at IS 'When to look it up again (UTC)';
COMMENT ON COLUMN pull_requests.closed_on IS 'Day (UTC) it was closed without being merged; NULL if it is open or merged';
COMMENT ON COLUMN pull_requests.problem IS 'Why it could not be looked up; NULL if it could';
