-- Grain: one row per day and path of a simulated history, in the order in which an export would have stored it. The first
-- $daily paths are viewed every day, as many after them every day, then every second, every third, and so on, ever less.
INSERT INTO page_views
SELECT
  'prj_bench',
  $first::DATE + day::INTEGER,
  '/docs/page-' || path,
  (hash(day, path) % greatest(2, 90 // every))::BIGINT AS human,
  (hash(path, day) % greatest(2, 70 // every))::BIGINT AS ai,
  human + ai
FROM
  (
    SELECT path, every, unnest(range((hash(path) % every)::BIGINT, $days::BIGINT, every)) AS day
    FROM (SELECT range AS path, greatest(1, range // $daily::BIGINT) AS every FROM range($paths::BIGINT))
  )
ORDER BY day
