-- Unattributed views are computed from the rows. The lake does not contain failures.
INSERT INTO day_loads BY NAME
SELECT
  stored.project,
  stored.day,
  state,
  loaded_at AT TIME ZONE 'UTC' AS attempted_at,
  loaded_at AT TIME ZONE 'UTC' AS loaded_at,
  stored.human,
  stored.ai,
  stored.total,
  pages,
  stored.human - coalesce(counted.human, 0) AS unattributed_human,
  stored.ai - coalesce(counted.ai, 0) AS unattributed_ai,
  stored.total - coalesce(counted.total, 0) AS unattributed_total
FROM read_parquet(getvariable('lake_files'), hive_partitioning = false) AS stored
LEFT JOIN
  (
    SELECT project, day, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai, sum(total)::BIGINT AS total
    FROM page_views
    GROUP BY project, day
  ) AS counted
  ON counted.project = stored.project AND counted.day = stored.day
WHERE stored.project IS NOT NULL AND is_in_shard(stored.project)
ORDER BY stored.day, stored.project
