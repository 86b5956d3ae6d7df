CREATE TEMP TABLE old_deliveries AS
FROM deliveries;

DROP TABLE deliveries;

-- Grain: one row per report, project, period and recipient. Channels are recipients, and a correction
-- needs the numbers that were sent.
CREATE TABLE deliveries (
  report VARCHAR NOT NULL,
  project VARCHAR NOT NULL,
  period VARCHAR NOT NULL,
  recipient VARCHAR NOT NULL,
  state VARCHAR NOT NULL CHECK (state IN ('sending', 'sent', 'waiting', 'failed', 'unknown')),
  via VARCHAR NOT NULL,
  message_id VARCHAR NOT NULL,
  attempts INTEGER NOT NULL,
  tried_at TIMESTAMP NOT NULL,
  settled_at TIMESTAMP,
  next_attempt_at TIMESTAMP,
  note VARCHAR,
  days_covered INTEGER,
  human BIGINT,
  ai BIGINT
);

INSERT INTO deliveries BY NAME
FROM old_deliveries;

DROP TABLE old_deliveries;
