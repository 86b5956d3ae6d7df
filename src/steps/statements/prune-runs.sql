-- Keeps the latest thousand runs of each step, and all since its latest success, where an outage began.
DELETE FROM runs
WHERE
  rowid IN (
    SELECT rowid
    FROM runs
    QUALIFY
      row_number() OVER (PARTITION BY step ORDER BY started_at DESC) > 1000
      AND started_at < max(started_at) FILTER (outcome = 'done') OVER (PARTITION BY step)
  )
