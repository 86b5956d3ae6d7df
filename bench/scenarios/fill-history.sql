-- Inserts a simulated history in the order in which an export would have stored it. The first 2 *
-- $daily paths are viewed every day, the next $daily every second day, the next every third, and so
-- on.
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
