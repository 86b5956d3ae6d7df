-- Grain: one row, the delivery; none when it was never attempted.
FROM deliveries
WHERE report = $report AND project = $project AND period = $period AND recipient = $recipient
