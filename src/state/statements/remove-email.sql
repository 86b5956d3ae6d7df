DELETE FROM emails
WHERE report = $report AND project = $project AND period = $period AND recipient = $recipient
