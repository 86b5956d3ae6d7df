-- When a step that could not come to its end may go on.
ALTER TABLE runs ADD COLUMN resume_at TIMESTAMP;

COMMENT ON COLUMN runs.resume_at IS 'When the budget or the server lets the step go on (UTC); NULL when neither named a moment';
