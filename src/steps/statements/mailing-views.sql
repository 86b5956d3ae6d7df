-- Grain: one row with the stored days of some projects in a period, how many of the projects have any, and the views
-- on those days of the sites, or only of the pages that match.
WITH part AS (
  SELECT project, day, sum(human) AS human, sum(ai) AS ai
  FROM page_views
  WHERE
    $pages <> '*'
    AND page GLOB $pages
    AND project IN (SELECT unnest(from_json($projects, '["VARCHAR"]')))
    AND day BETWEEN $first::DATE AND $last::DATE
  GROUP BY project, day
)

SELECT
  count(*) AS days,
  count(DISTINCT project) AS projects,
  coalesce(sum(if($pages = '*', site_days.human, part.human)), 0)::BIGINT AS human,
  coalesce(sum(if($pages = '*', site_days.ai, part.ai)), 0)::BIGINT AS ai
FROM site_days LEFT JOIN part USING (project, day)
WHERE project IN (SELECT unnest(from_json($projects, '["VARCHAR"]'))) AND day BETWEEN $first::DATE AND $last::DATE
