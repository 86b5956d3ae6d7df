-- Grain: one row per part of the views of a project, in the order in which they are published. A part is all quarters that
-- begin within the same $rows rows, so it has at most that many more rows than its last quarter.
WITH
  quarters AS (
    SELECT project, min(day) AS first, max(day) AS last, count(*) AS rows
    FROM main.page_views
    GROUP BY project, date_trunc('quarter', day)
  ),
  parts AS (
    SELECT *, (sum(rows) OVER (PARTITION BY project ORDER BY first) - rows) // $rows AS part
    FROM quarters
  )
SELECT project, min(first) AS first, max(last) AS last
FROM parts
GROUP BY project, part
ORDER BY project, part
