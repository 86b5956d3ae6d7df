-- Grain: one row per report or alert and recipient, of the project or of all, the latest first.
SELECT report, period, recipient, state, tried_at, next_attempt_at, note
FROM deliveries
WHERE project = $project OR report = 'alert'
ORDER BY tried_at DESC
