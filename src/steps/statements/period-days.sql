-- Grain: one row per stored day of the period, oldest first, with the views of the site, or only of
-- the pages whose paths match, and whether a load changed those of the site since a report was sent.
SELECT
  day,
  state = 'final' AS is_final,
  if($pages = '*', site_days.human, coalesce(part.human, 0))::BIGINT AS human,
  if($pages = '*', site_days.ai, coalesce(part.ai, 0))::BIGINT AS ai,
  restated.day IS NOT NULL AS is_restated
FROM
  site_days
  LEFT JOIN (
    SELECT DISTINCT project, day
    FROM restatements
    WHERE restated_at > $since::TIMESTAMP AND (human_before <> human_after OR ai_before <> ai_after)
  ) AS restated USING (project, day)
  LEFT JOIN (
    SELECT project, day, sum(human) AS human, sum(ai) AS ai
    FROM page_views
    WHERE $pages <> '*' AND path GLOB $pages AND project = $project AND day BETWEEN $first::DATE AND $last::DATE
    GROUP BY project, day
  ) AS part USING (project, day)
WHERE project = $project AND day BETWEEN $first::DATE AND $last::DATE
ORDER BY day
