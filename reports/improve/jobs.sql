-- Grain: one row per agent job that was planned or ended in the reported week, or was not over when
-- the week ended, or whose pull request waits for review. A merged one is listed in the week of its merge. Until the next week has ended, jobs
-- planned since count as well: their pull requests are waiting now.
SELECT
  jobs.id,
  jobs.path,
  jobs.state,
  jobs.pr_link,
  jobs.pull_request,
  jobs.merged_into,
  jobs.pull_request_problem,
  jobs.reason,
  jobs.planned_at,
  jobs.ended_at,
  jobs.note,
  jobs.merged_on,
  -- In the last seven days, so that a page is new in one weekly report.
  jobs.planned_at >= least((SELECT max(day) FROM site_days WHERE project = $project) + 1, $to::DATE + 7) - 6 AS newly_flagged,
  {human: weekly_human, ai: weekly_ai, trend: trend} AS weekly
FROM jobs
WHERE
  jobs.project = $project
  AND (
    jobs.planned_at < $to::DATE + 1
    OR (SELECT max(day) FROM site_days WHERE project = $project) < $to::DATE + 7
  )
  AND (
    jobs.ended_at IS NULL
    OR jobs.ended_at >= $from::DATE
    OR jobs.pull_request IN ('open', 'merged elsewhere', 'unknown')
    OR jobs.merged_on BETWEEN $from::DATE AND $to::DATE
  )
  AND (jobs.merged_on IS NULL OR jobs.merged_on >= $from::DATE)
ORDER BY jobs.id
