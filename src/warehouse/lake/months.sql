-- Grain: one row per table and month of the lake, with a name that has a digest of its rows in any order. When a day was
-- loaded is not part of the digest: a day that was loaded again and did not change is no reason to write its month again.
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
