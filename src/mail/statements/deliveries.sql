-- Grain: one row per delivery ever attempted, of one report or project or of all of them.
FROM deliveries
WHERE ($report::VARCHAR IS NULL OR report = $report) AND ($project::VARCHAR IS NULL OR project = $project)
ORDER BY project, report, period, recipient
