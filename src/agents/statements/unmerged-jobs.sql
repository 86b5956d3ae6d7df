-- Grain: one row per job of the project that ended with a pull request in the last 180 days, is not known to be
-- merged, and is due to be looked up.
SELECT id, ref
FROM agent_jobs LEFT JOIN pull_requests ON pull_requests.job = agent_jobs.id
WHERE
  project = $project
  AND pr_link IS NOT NULL
  AND merged_on IS NULL
  AND ended_at > $now::TIMESTAMP - INTERVAL 180 DAY
  -- A check later than any delay allows was planned by a clock that was ahead.
  AND coalesce(next_check_at, ended_at) NOT BETWEEN $now::TIMESTAMP + INTERVAL 1 SECOND AND $now::TIMESTAMP + INTERVAL 1 DAY
ORDER BY next_check_at NULLS FIRST, id
