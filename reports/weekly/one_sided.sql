-- Grain: one row with the pages that people read and AI rarely does, and the reverse: the five most viewed
-- of each. Bots visit an address in one night, sometimes past midnight, so the same has to be true of the core: the
-- views without the two days with the most of each address.
SELECT
  coalesce(
    list(page ORDER BY page.human DESC, path) FILTER (core.human >= greatest(50, 10 * core.ai) AND page.human >= 10 * page.ai),
    []
  )[:5] AS human,
  coalesce(
    list(page ORDER BY page.ai DESC, path) FILTER (core.ai >= greatest(50, 10 * core.human) AND page.ai >= 10 * page.human),
    []
  )[:5] AS ai
FROM
  (
    SELECT
      path,
      {path: path, human: sum(human)::BIGINT, ai: sum(ai)::BIGINT} AS page,
      {human: sum(human_core), ai: sum(ai_core)} AS core
    FROM
      (
        SELECT
          page AS path,
          sum(human) AS human,
          sum(ai) AS ai,
          sum(human) - list_sum(max(human, 2)) AS human_core,
          sum(ai) - list_sum(max(ai, 2)) AS ai_core
        FROM page_views
        WHERE project = $project AND day BETWEEN $from::DATE AND $to::DATE
        GROUP BY page, page_views.path
      )
    GROUP BY path
    HAVING is_page(path)
  )
