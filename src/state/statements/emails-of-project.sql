-- Grain: one row per delivery of a report about a project.
SELECT *
FROM emails
WHERE report = $report AND project = $project
ORDER BY period, recipient
