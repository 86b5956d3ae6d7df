-- Grain: one row per project and day whose rows may differ between this database and the attached `publication`.
CREATE OR REPLACE TEMP TABLE changed_days AS
WITH
  live AS (
    SELECT project, day, loaded_at, human, ai, total, pages, count(restated_at) AS restatements
    FROM main.day_loads
    LEFT JOIN main.restatements USING (project, day)
    GROUP BY ALL
  ),
  published AS (
    SELECT project, day, loaded_at, human, ai, total, pages, count(restated_at) AS restatements
    FROM publication.day_loads
    LEFT JOIN publication.restatements USING (project, day)
    GROUP BY ALL
  )
SELECT DISTINCT project, day
FROM ((FROM live EXCEPT FROM published) UNION ALL (FROM published EXCEPT FROM live))
