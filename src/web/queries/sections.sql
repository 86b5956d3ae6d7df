-- Grain: one row per section with pages below it that were viewed in the range, or in the days it is compared with, most
-- read first, to choose from; and the chosen one, even if nobody read it then.
SELECT section, sum(views)::BIGINT AS views
FROM
  (
    SELECT section_of(path) AS section, human + ai AS views
    FROM range_changes
    WHERE project = $project AND is_page AND path LIKE '/%/%'
    UNION ALL
    SELECT $section, NULL
    WHERE $section <> ''
  )
GROUP BY section
ORDER BY section = $section DESC, views DESC NULLS LAST, section
LIMIT 40
