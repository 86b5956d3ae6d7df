-- Grain: one row per section of the site that has more than one page, most read first.
SELECT path AS section, total AS views
FROM
  changes($from, $to, 0, per := 'section')
  SEMI JOIN (
    SELECT section_of(path) AS path
    FROM page_views
    WHERE project = $project AND day BETWEEN $from::DATE AND $to::DATE AND path LIKE '/%/%'
  ) USING (path)
WHERE project = $project AND total > 0
ORDER BY views DESC, section
LIMIT 40
