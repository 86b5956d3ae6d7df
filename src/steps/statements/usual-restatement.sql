-- Grain: one row, the median share of views changed by later loads, over the twelve earlier periods of
-- the same length, each counted from the same time after its end as the report was sent.
WITH
  past AS (
    SELECT ($first::DATE - day - 1) // $days::INTEGER + 1 AS ago, sum(human + ai) AS views
    FROM site_days
    WHERE project = $project AND day BETWEEN $first::DATE - 12 * $days::INTEGER AND $first::DATE - 1
    GROUP BY ago
    HAVING count(*) = $days
  ),

  change AS (
    SELECT ago, sum(human_after - human_before) AS human, sum(ai_after - ai_before) AS ai
    FROM
      (
        SELECT *, ($first::DATE - day - 1) // $days::INTEGER + 1 AS ago
        FROM restatements
        WHERE project = $project AND day BETWEEN $first::DATE - 12 * $days::INTEGER AND $first::DATE - 1
      )
    WHERE restated_at > $sent_at::TIMESTAMP - to_days((ago * $days)::INTEGER)
    GROUP BY ago
  )

SELECT
  coalesce(
    median(
      coalesce((abs(human) + abs(ai)) / greatest(1, views - human - ai), 0)
    ),
    0
  )::DOUBLE AS share
FROM past LEFT JOIN change USING (ago)
-- Periods that were loaded long after they ended do not show how much changes.
WHERE ago <= (SELECT max(ago) FROM change)
