-- Grain: one row per kind of record of which some are dated more than an hour in the future, with the furthest time.
WITH
  dated (kind, moment) AS (
    SELECT 'day', greatest(checked_at, loaded_at, day) FROM days
    UNION ALL SELECT 'restatement', restated_at FROM restatements
  )
SELECT kind, count(*) AS rows, max(moment) AS latest
FROM dated
WHERE moment > $now::TIMESTAMP + INTERVAL 1 HOUR
GROUP BY kind
ORDER BY kind
