-- Grain: one row per table and month of the lake, with a fingerprint of what tells whether its rows changed, and their
-- digest if it is still known. Each digest is computed again once a week, a seventh of the months on each day.
WITH
  restated AS (
    SELECT strftime(day, '%Y-%m') AS month, count(*) AS times, max(restated_at) AS latest
    FROM restatements SEMI JOIN lake_projects USING (project)
    GROUP BY month
  ),

  stored AS (
    SELECT strftime(day, '%Y-%m') AS month, count(*) AS days, sum(hash(lake_days)) AS hashes
    FROM lake_days
    GROUP BY month
  ),

  printed AS (
    SELECT month, md5(concat_ws('-', days, hashes, times, latest)) AS fingerprint
    FROM stored LEFT JOIN restated USING (month)
  )

SELECT
  dataset,
  month,
  printed.fingerprint,
  CASE
    WHEN known.fingerprint IS DISTINCT FROM printed.fingerprint THEN NULL
    WHEN $now::TIMESTAMP BETWEEN hashed_at AND hashed_at + INTERVAL 1 DAY THEN digest
    WHEN $now::TIMESTAMP > hashed_at + INTERVAL 8 DAY THEN NULL
    WHEN (epoch_ms($now::TIMESTAMP) // 86400000 - datediff('month', DATE '2000-01-01', (month || '-01')::DATE)) % 7 <> 0 THEN digest
  END AS digest,
  files
FROM
  printed
  CROSS JOIN (VALUES ('days'), ('views')) AS tables (dataset)
  LEFT JOIN lake_months AS known USING (dataset, month)
ORDER BY dataset, month
