-- Grain: one row if the fact is known and, for a limit, was found between `since` and `now`; otherwise none.
SELECT value, found_at
FROM platform_facts
WHERE
  project = $project
  AND fact = $fact
  AND (NOT $is_limit OR found_at BETWEEN $since AND $now)
