-- Grain: one row per section of the site that has pages below it, most read first, to choose from. Of the last thirteen
-- weeks of the range, because a list of sections need not wait for years.
SELECT section_of(path) AS section, sum(views)::BIGINT AS views
FROM
  (
    SELECT path, sum(human + ai) AS views
    FROM page_views
    WHERE project = $project AND day BETWEEN $to::DATE - 90 AND $to::DATE AND path LIKE '/%/%'
    GROUP BY path
  )
GROUP BY section
HAVING views > 0
ORDER BY views DESC, section
LIMIT 40
