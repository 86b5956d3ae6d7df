-- Inserts a simulated history in the order in which an export would have stored it. The first 2 * $daily paths are viewed
-- every day, the next $daily every second day, the next every third, and so on. The numbers of a path repeat every seven
-- days, as in server.ts. With several projects, each has an equal part of the paths.
INSERT INTO page_views
SELECT
  'prj_' || path % $projects::BIGINT AS project,
  $first::DATE + day::INTEGER AS day,
  '/docs/guides/page-' || path AS path,
  '/docs/guides/page-' || path AS page,
  (path * 7 + weekday * 13) % 90 AS human,
  (path * 11 + weekday * 17) % 70 AS ai,
  human + ai
FROM
  (
    SELECT path, day, ($first::DATE + day::INTEGER - DATE '1970-01-01') % 7 AS weekday
    FROM
      (
        SELECT path, unnest(range((path * 7919) % every, $days::BIGINT, every)) AS day
        FROM (SELECT range AS path, greatest(1, range // $daily::BIGINT) AS every FROM range($paths::BIGINT))
      )
  )
ORDER BY day
