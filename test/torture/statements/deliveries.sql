-- Grain: one row per delivery.
SELECT report, period, recipient, state, message_id, attempts
FROM deliveries
ORDER BY report, period, recipient
