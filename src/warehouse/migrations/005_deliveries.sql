-- Grain: one row per report, project, period and recipient that a mail was ever attempted for. Unique because each row
-- is written in the transaction that looked for it.
CREATE TABLE deliveries (
  report VARCHAR NOT NULL,
  project VARCHAR NOT NULL,
  period VARCHAR NOT NULL,
  recipient VARCHAR NOT NULL,
  state VARCHAR NOT NULL CHECK (state IN ('sending', 'sent', 'waiting', 'failed', 'unknown')),
  via VARCHAR NOT NULL CHECK (via IN ('smtp', 'outbox')),
  message_id VARCHAR NOT NULL,
  attempts INTEGER NOT NULL,
  tried_at TIMESTAMP NOT NULL,
  settled_at TIMESTAMP,
  next_attempt_at TIMESTAMP,
  note VARCHAR
);

COMMENT ON TABLE deliveries IS 'Reports by mail: who was sent which period, and what became of it. One row per report, project, period and recipient.';
COMMENT ON COLUMN deliveries.report IS 'Name of the report, such as weekly';
COMMENT ON COLUMN deliveries.project IS 'Project id on the platform';
COMMENT ON COLUMN deliveries.period IS 'Period that the report is about, such as 2026-W46';
COMMENT ON COLUMN deliveries.recipient IS 'Mail address';
COMMENT ON COLUMN deliveries.state IS 'sending (committed before anything leaves), sent, waiting (it did not arrive, and is tried again), failed (refused for good, or given up) or unknown (it may have arrived: never sent again by itself)';
COMMENT ON COLUMN deliveries.via IS 'smtp: handed to the mail server; outbox: written as a file';
COMMENT ON COLUMN deliveries.message_id IS 'Message-ID of the mail, by which to find it in the logs of mail servers';
COMMENT ON COLUMN deliveries.attempts IS 'How often it was attempted';
COMMENT ON COLUMN deliveries.tried_at IS 'When the last attempt began (UTC)';
COMMENT ON COLUMN deliveries.settled_at IS 'When it became sent, failed or unknown (UTC); NULL before';
COMMENT ON COLUMN deliveries.next_attempt_at IS 'When it is tried again (UTC); NULL when it is not';
COMMENT ON COLUMN deliveries.note IS 'What the mail server said, or where the file lies';
