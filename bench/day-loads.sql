-- Marks every simulated day as loaded and settled.
INSERT INTO day_loads BY NAME
SELECT
  project,
  day,
  'final' AS state,
  day + INTERVAL 4 DAY AS attempted_at,
  day + INTERVAL 4 DAY AS loaded_at,
  sum(human) AS human,
  sum(ai) AS ai,
  sum(total) AS total,
  count(*) AS pages
FROM page_views
GROUP BY ALL
