-- Marks every day of the simulated weeks as loaded and settled, also those without views.
INSERT INTO days BY NAME
SELECT
  project,
  calendar.day::DATE AS day,
  'final' AS state,
  calendar.day + INTERVAL 4 DAY AS first_loaded_at,
  first_loaded_at AS loaded_at,
  first_loaded_at AS checked_at,
  coalesce(sum(human), 0) AS human,
  coalesce(sum(ai), 0) AS ai,
  coalesce(sum(total), 0) AS total,
  count(path) AS pages,
  0 AS unattributed_human,
  0 AS unattributed_ai,
  0 AS unattributed_total,
  0 AS nights_in_doubt
FROM
  (
    SELECT project, min(day) AS first_day, max(date_trunc('week', day)) + INTERVAL 6 DAY AS last_day
    FROM page_views
    GROUP BY project
  ) AS extent
  CROSS JOIN LATERAL generate_series(first_day::TIMESTAMP, last_day, INTERVAL 1 DAY) AS calendar (day)
  LEFT JOIN page_views AS views USING (project, day)
GROUP BY ALL
