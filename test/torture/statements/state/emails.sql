-- Grain: one row per email.
SELECT report, period, recipient, state, message_id, attempt, attempts
FROM emails
ORDER BY report, period, recipient
