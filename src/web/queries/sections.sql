-- Grain: one row per section of the site, the first part of a path that has more parts; most read first.
SELECT '/' || split_part(path, '/', 2) AS section, sum(human + ai)::BIGINT AS views
FROM page_views
WHERE project = $project AND day BETWEEN $from::DATE AND $to::DATE AND path LIKE '/%/%'
GROUP BY section
ORDER BY views DESC, section
LIMIT 40
