-- Grain: one row per dataset and month of the lake, with an order-independent digest of its rows.
SELECT
  'views' AS dataset,
  strftime(day, '%Y-%m') AS month,
  count(*) AS rows,
  left(md5(count(*) || '-' || sum(hash(lake_views))), 16) AS digest
FROM lake_views
GROUP BY ALL
UNION ALL
SELECT
  'days' AS dataset,
  strftime(day, '%Y-%m') AS month,
  count(*) AS rows,
  left(md5(count(*) || '-' || sum(hash(lake_days))), 16) AS digest
FROM lake_days
GROUP BY ALL
ORDER BY dataset, month
