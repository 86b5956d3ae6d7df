-- Grain: one row, the delivery as it was, if it was.
DELETE FROM deliveries
WHERE report = $report AND project = $project AND period = $period AND recipient = $recipient
