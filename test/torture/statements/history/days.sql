-- Grain: one row per day in `days` or in `page_views`, with the numbers of the day and the sums of the rows.
WITH
  facts AS (
    SELECT
      project,
      day,
      count(*) AS fact_pages,
      count(DISTINCT path) AS fact_paths,
      sum(human) AS fact_human,
      sum(ai) AS fact_ai,
      sum(total) AS fact_total,
      md5(string_agg(concat_ws(' ', path, human, ai, total), chr(10) ORDER BY path)) AS fingerprint
    FROM page_views
    GROUP BY project, day
  )
SELECT
  day::VARCHAR AS day,
  state,
  coalesce(epoch_ms(checked_at), 0)::DOUBLE AS attempted_ms,
  epoch_ms(loaded_at)::DOUBLE AS loaded_ms,
  pages::DOUBLE AS pages,
  (human - unattributed_human)::DOUBLE AS human,
  (ai - unattributed_ai)::DOUBLE AS ai,
  (total - unattributed_total)::DOUBLE AS total,
  coalesce(unattributed_human, 0) <> 0
  OR coalesce(unattributed_ai, 0) <> 0
  OR coalesce(unattributed_total, 0) <> 0 AS is_short,
  coalesce(fact_pages, 0)::DOUBLE AS fact_pages,
  coalesce(fact_paths, 0)::DOUBLE AS fact_paths,
  coalesce(fact_human, 0)::DOUBLE AS fact_human,
  coalesce(fact_ai, 0)::DOUBLE AS fact_ai,
  coalesce(fact_total, 0)::DOUBLE AS fact_total,
  coalesce(fingerprint, md5('')) AS fingerprint
FROM days
FULL JOIN facts USING (project, day)
ORDER BY day
