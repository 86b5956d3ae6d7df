-- Marks every simulated day as loaded and settled.
INSERT INTO days BY NAME
SELECT
  project,
  day,
  'final' AS state,
  day + INTERVAL 4 DAY AS first_loaded_at,
  first_loaded_at AS loaded_at,
  first_loaded_at AS checked_at,
  sum(human) AS human,
  sum(ai) AS ai,
  sum(total) AS total,
  count(*) AS pages,
  0 AS unattributed_human,
  0 AS unattributed_ai,
  0 AS unattributed_total,
  0 AS nights_in_doubt
FROM page_views
GROUP BY ALL
