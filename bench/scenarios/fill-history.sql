-- Grain: one row per day and path of a simulated history, in the order in which an export would have stored it.
INSERT INTO page_views
SELECT
  'prj_bench',
  $first::DATE + day.day::INTEGER,
  '/docs/page-' || path.path,
  (hash(day.day, path.path) % 90)::BIGINT,
  (hash(path.path, day.day) % 70)::BIGINT,
  (hash(day.day, path.path) % 90 + hash(path.path, day.day) % 70)::BIGINT
FROM range($days::BIGINT) AS day(day)
CROSS JOIN range($paths::BIGINT) AS path(path)
ORDER BY day.day
