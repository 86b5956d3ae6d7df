-- Grain: one row per delivery ever attempted that has the given parts of the key; those that are NULL may be any.
FROM deliveries
WHERE
  ($report::VARCHAR IS NULL OR report = $report)
  AND ($project::VARCHAR IS NULL OR project = $project)
  AND ($period::VARCHAR IS NULL OR period = $period)
  AND ($recipient::VARCHAR IS NULL OR recipient = $recipient)
ORDER BY project, report, period, recipient
