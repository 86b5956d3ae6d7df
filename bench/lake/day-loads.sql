-- Grain: one row per project and day of the simulated history.
INSERT INTO day_loads BY NAME
SELECT
  project,
  day,
  'final' AS state,
  day + INTERVAL 4 DAY AS attempted_at,
  day + INTERVAL 4 DAY AS loaded_at,
  sum(human)::BIGINT AS human,
  sum(ai)::BIGINT AS ai,
  sum(total)::BIGINT AS total,
  count(*) AS pages
FROM page_views
GROUP BY project, day
