DELETE FROM deliveries
WHERE report = $report AND project = $project AND period = $period AND recipient = $recipient
