-- Grain: one row per section of the site, the first part of a path that has more parts; most read first.
SELECT '/' || split_part(path, '/', 2) AS section, sum(views)::BIGINT AS views
FROM
  (
    SELECT path, sum(human + ai) AS views
    FROM page_views
    WHERE project = $project AND day BETWEEN $from::DATE AND $to::DATE
    GROUP BY path
  )
WHERE path LIKE '/%/%'
GROUP BY section
ORDER BY views DESC, section
LIMIT 40
