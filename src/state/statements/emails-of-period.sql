-- Grain: one row per project about which a recipient was sent a report of one period; `-` for all projects.
SELECT *
FROM emails
WHERE report = $report AND period = $period AND recipient = $recipient
ORDER BY project
