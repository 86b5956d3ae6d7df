-- Grain: one row per job of the project that ended with a pull request since $since, is not known to be merged, and is
-- due to be looked up.
SELECT jobs.*, closed_on, merged_into, problem AS pull_request_problem
FROM jobs
LEFT JOIN pull_requests ON pull_requests.job = jobs.id
WHERE
  project = $project
  AND pr_link IS NOT NULL
  AND merged_on IS NULL
  AND ended_at > $since
  AND coalesce(next_check_at, ended_at) NOT BETWEEN $soon AND $latest
ORDER BY next_check_at, jobs.id
