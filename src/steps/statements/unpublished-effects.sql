-- Grain: one row, whether a job, a message or an email changed after the last publishing that was done had begun. What
-- seems to lie in the future comes from a clock that was wrong.
SELECT coalesce(max(changed_at) > coalesce(any_value(published_at), TIMESTAMP 'epoch'), false) AS unpublished
FROM
  (
    SELECT changed_at
    FROM job_transitions
    UNION ALL
    SELECT coalesce(settled_at, tried_at)
    FROM deliveries
  ) AS effects (changed_at),
  (SELECT max(started_at) FROM runs WHERE step = 'publish' AND outcome = 'done') AS last_done (published_at)
WHERE changed_at <= $now::TIMESTAMP
