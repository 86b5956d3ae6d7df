-- Grain: one row with the pages that people read and AI rarely does, and the reverse: the five most viewed
-- of each.
SELECT
  coalesce(list(page ORDER BY page.human DESC, path) FILTER (page.human >= greatest(50, 10 * page.ai)), [])[:5] AS human,
  coalesce(list(page ORDER BY page.ai DESC, path) FILTER (page.ai >= greatest(50, 10 * page.human)), [])[:5] AS ai
FROM
  (
    SELECT path, {path: path, human: sum(human)::BIGINT, ai: sum(ai)::BIGINT} AS page
    FROM page_views
    WHERE project = $project AND day BETWEEN $from::DATE AND $to::DATE
    GROUP BY path
  )
