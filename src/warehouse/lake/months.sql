-- Grain: one row per table and month of the lake, with a name that contains an order-independent
-- digest of its rows. The digest excludes load times, so that reloading an unchanged day does not
-- rewrite its month.
SELECT dataset, month, format('month={}/{}-{}', month, $publisher::VARCHAR, left(md5(rows || '-' || hashes), 16)) AS name
FROM
  (
    SELECT 'views' AS dataset, strftime(day, '%Y-%m') AS month, count(*) AS rows, sum(hash(lake_views)) AS hashes
    FROM lake_views
    GROUP BY month
    UNION ALL
    SELECT
      'days' AS dataset,
      strftime(day, '%Y-%m') AS month,
      count(*) AS rows,
      sum(hash(project, day, state, human, ai, total, pages)) AS hashes
    FROM lake_days
    GROUP BY month
  )
ORDER BY dataset, month
