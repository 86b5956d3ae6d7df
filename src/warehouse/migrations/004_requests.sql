-- Grain: one row per block of requests reserved before they were sent, or per refusal by the server.
CREATE TABLE request_uses (
  id VARCHAR NOT NULL,
  bucket VARCHAR NOT NULL,
  used_at TIMESTAMP NOT NULL,
  requests INTEGER NOT NULL,
  cause VARCHAR NOT NULL CHECK (cause IN ('reserved', 'refused')),
  paused_until TIMESTAMP
);

COMMENT ON TABLE request_uses IS 'What was used of the hourly budget of requests. One row per block reserved, or per refusal; kept for two days.';
COMMENT ON COLUMN request_uses.id IS 'Id of the block or refusal';
COMMENT ON COLUMN request_uses.bucket IS 'What shares a budget: the environment variable that holds the API key';
COMMENT ON COLUMN request_uses.used_at IS 'When the block was reserved, or the refusal came (UTC)';
COMMENT ON COLUMN request_uses.requests IS 'Requests of the block; for a refusal, those that others must have sent, since the budget was spent earlier than our own count says';
COMMENT ON COLUMN request_uses.cause IS 'reserved or refused (the server answered 429)';
COMMENT ON COLUMN request_uses.paused_until IS 'Until when the server asked not to be asked (UTC); NULL when it did not say';

-- Grain: one row per time that stored days were held against the totals of the platform.
CREATE TABLE verifications (
  project VARCHAR NOT NULL,
  verified_at TIMESTAMP NOT NULL,
  first_day DATE NOT NULL,
  last_day DATE NOT NULL,
  days_differing INTEGER NOT NULL
);

COMMENT ON TABLE verifications IS 'Checks of stored days against the totals of the platform. One row per check of a range of days.';
COMMENT ON COLUMN verifications.project IS 'Project id on the platform';
COMMENT ON COLUMN verifications.verified_at IS 'When (UTC)';
COMMENT ON COLUMN verifications.first_day IS 'First day of the range (UTC)';
COMMENT ON COLUMN verifications.last_day IS 'Last day of the range, included (UTC)';
COMMENT ON COLUMN verifications.days_differing IS 'Days of the range whose totals were not those of the platform';
