-- Grain: one row per agent job that is not merged, and is active, ended in the reported week or later,
-- or has a pull request that waits for review, however old. One that was closed without being merged needs none.
SELECT
  id,
  path,
  state,
  pr_link,
  pull_request,
  merged_into,
  pull_request_problem,
  note,
  coalesce(ended_at >= $from::DATE AND ended_at < $to::DATE + 1, false) AS is_new
FROM jobs
WHERE
  project = $project
  AND merged_on IS NULL
  AND (ended_at IS NULL OR ended_at >= $from::DATE OR pull_request IN ('open', 'merged elsewhere', 'unknown'))
ORDER BY id
