-- Once there are many, keeps the latest thousand runs of each step, and all since its latest success, where an outage
-- began.
DELETE FROM runs
WHERE
  (SELECT count(*) FROM runs) > 10000
  AND rowid IN (
    SELECT rowid
    FROM
      (
        SELECT
          rowid,
          started_at,
          row_number() OVER (PARTITION BY step ORDER BY started_at DESC) AS place,
          max(CASE WHEN outcome = 'done' THEN started_at END) OVER (PARTITION BY step) AS last_done_at
        FROM runs
      )
    WHERE place > 1000 AND started_at < last_done_at
  )
