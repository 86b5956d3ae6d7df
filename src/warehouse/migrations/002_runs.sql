-- Grain: one row per execution of a step (export, improve, poll, report, publish).
CREATE TABLE runs (
  run VARCHAR NOT NULL,
  step VARCHAR NOT NULL,
  started_at TIMESTAMP NOT NULL,
  ended_at TIMESTAMP,
  outcome VARCHAR NOT NULL CHECK (outcome IN ('running', 'done', 'failed', 'later', 'interrupted')),
  summary VARCHAR,
  resume_at TIMESTAMP
);

COMMENT ON TABLE runs IS 'What each step did. One row per execution of a step.';
COMMENT ON COLUMN runs.run IS 'Id shared by the steps of one command';
COMMENT ON COLUMN runs.step IS 'export, improve, poll, report, publish or audit';
COMMENT ON COLUMN runs.started_at IS 'When the step began (UTC)';
COMMENT ON COLUMN runs.ended_at IS 'When the step ended (UTC); NULL while it runs, or when it was killed';
COMMENT ON COLUMN runs.outcome IS 'running, done, failed, later (told to try again later), interrupted';
COMMENT ON COLUMN runs.summary IS 'What was done, or the error, in a sentence';
COMMENT ON COLUMN runs.resume_at IS 'When the budget or the server lets the step go on (UTC); NULL when neither named a moment';
