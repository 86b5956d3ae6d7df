-- Grain: one row for the delivery, or none if it was never attempted.
FROM deliveries
WHERE report = $report AND project = $project AND period = $period AND recipient = $recipient
