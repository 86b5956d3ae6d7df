-- Grain: one row per table and month of the lake, with a digest of its rows in any order. When a day was loaded is not
-- part of the digest: a day that was loaded again and did not change is no reason to write its month again.
SELECT
  'views' AS dataset,
  strftime(day, '%Y-%m') AS month,
  left(md5(count(*) || '-' || sum(hash(lake_views))), 16) AS digest
FROM lake_views
GROUP BY ALL
UNION ALL
SELECT
  'days' AS dataset,
  strftime(day, '%Y-%m') AS month,
  left(md5(count(*) || '-' || sum(hash(project, day, state, human, ai, total, pages))), 16) AS digest
FROM lake_days
GROUP BY ALL
ORDER BY dataset, month
