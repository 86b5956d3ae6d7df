-- Grain: one row per agent job that has not ended, or was planned or ended in the reported week or
-- since. Merged jobs need no more attention, so they are left out.
SELECT
  jobs.id,
  jobs.path,
  jobs.state,
  jobs.remote_status,
  jobs.pr_link,
  jobs.reason,
  jobs.planned_at,
  jobs.ended_at,
  jobs.note,
  jobs.planned_at >= $from::DATE AS newly_flagged,
  coalesce(week.human, 0) AS human,
  coalesce(week.ai, 0) AS ai
FROM
  jobs
  LEFT JOIN (
    SELECT path, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai
    FROM page_views
    WHERE project = $project AND day BETWEEN $from::DATE AND $to::DATE
    GROUP BY path
  ) AS week USING (path)
WHERE
  jobs.project = $project
  AND jobs.merged_on IS NULL
  AND (jobs.ended_at IS NULL OR jobs.ended_at >= $from::DATE OR jobs.planned_at >= $from::DATE)
ORDER BY jobs.id
