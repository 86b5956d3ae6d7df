-- Grain: one row per email or post.
SELECT
  report,
  project,
  period,
  recipient,
  state,
  via,
  message_id,
  attempts,
  tried_at,
  settled_at,
  next_attempt_at,
  note,
  days_covered,
  human,
  ai
FROM emails
ORDER BY tried_at, attempt
