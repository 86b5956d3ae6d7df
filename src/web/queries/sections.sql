-- Grain: one row per section with pages below it that were viewed in the range, or in the days it is compared with, most
-- read first, to choose from.
SELECT section_of(path) AS section, sum(human + ai)::BIGINT AS views
FROM changes($from, $to, $shift, per := 'page')
WHERE project = $project AND path LIKE '/%/%'
GROUP BY section
ORDER BY views DESC NULLS LAST, section
LIMIT 40
