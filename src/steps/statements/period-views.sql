-- Grain: one row with the number of stored days of the period, and the views on them of the site, or
-- only of the pages that match.
SELECT
  count(*) AS days,
  coalesce(sum(if($pages = '*', site_days.human, part.human)), 0)::BIGINT AS human,
  coalesce(sum(if($pages = '*', site_days.ai, part.ai)), 0)::BIGINT AS ai
FROM
  site_days
  LEFT JOIN (
    SELECT day, sum(human) AS human, sum(ai) AS ai
    FROM page_views
    WHERE $pages <> '*' AND page GLOB $pages AND project = $project AND day BETWEEN $first::DATE AND $last::DATE
    GROUP BY day
  ) AS part USING (day)
WHERE project = $project AND day BETWEEN $first::DATE AND $last::DATE
