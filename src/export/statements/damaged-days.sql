-- Grain: one row per stored day whose rows do not add up to its totals, or contain a path twice.
WITH
  stored AS (
    SELECT
      day,
      count(*) AS pages,
      count(DISTINCT path) AS paths,
      sum(human)::BIGINT AS human,
      sum(ai)::BIGINT AS ai,
      sum(total)::BIGINT AS total
    FROM page_views
    WHERE project = $project
    GROUP BY day
  ),
  expected AS (
    SELECT
      day,
      pages,
      human - unattributed_human AS human,
      ai - unattributed_ai AS ai,
      total - unattributed_total AS total
    FROM days
    WHERE project = $project
  )
SELECT day
FROM expected
FULL JOIN stored USING (day)
WHERE
  (coalesce(expected.pages, 0), coalesce(expected.human, 0), coalesce(expected.ai, 0), coalesce(expected.total, 0))
  <> (coalesce(stored.pages, 0), coalesce(stored.human, 0), coalesce(stored.ai, 0), coalesce(stored.total, 0))
  OR stored.pages <> stored.paths
ORDER BY day
