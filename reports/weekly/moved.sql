-- Grain: one row per audience and page that moved, the five farthest from what was expected, with
-- its full weeks of the last thirteen, oldest first, and where they were expected.
WITH mover AS (
  SELECT
    moved.audience,
    path,
    if(moved.audience = 'ai', ai, human) AS views,
    if(moved.audience = 'ai', ai_expected, human_expected) AS expected,
    if(moved.audience = 'ai', ai_weeks, human_weeks) AS expected_weeks
  FROM movers($from) AS page JOIN (VALUES ('human'), ('ai')) AS moved (audience) ON page.audience IN (moved.audience, 'both')
  WHERE project = $project
  ORDER BY abs(views - expected) DESC, path, moved.audience
  LIMIT 5
),

full_week AS (
  SELECT ($from::DATE - day + 6) // 7 AS weeks_ago
  FROM site_days
  WHERE project = $project AND day BETWEEN $from::DATE - 84 AND $to::DATE
  GROUP BY weeks_ago
  HAVING count(*) = 7
),

page_week AS (
  SELECT path, ($from::DATE - day + 6) // 7 AS weeks_ago, sum(human) AS human, sum(ai) AS ai
  FROM page_views SEMI JOIN mover USING (path)
  WHERE project = $project AND day BETWEEN $from::DATE - 84 AND $to::DATE
  GROUP BY ALL
),

expected_week AS (
  SELECT audience, path, ($from::DATE - expected.week) // 7 AS weeks_ago, expected.low, expected.high
  FROM (SELECT audience, path, unnest(expected_weeks) AS expected FROM mover)
)

SELECT
  audience,
  path,
  views,
  round(expected)::BIGINT AS expected,
  list(
    {
      ago: weeks_ago,
      views: coalesce(if(audience = 'ai', page_week.ai, page_week.human), 0)::BIGINT,
      low: low,
      high: high
    }
    ORDER BY weeks_ago DESC
  ) AS weeks
FROM
  mover
  CROSS JOIN full_week
  LEFT JOIN page_week USING (path, weeks_ago)
  LEFT JOIN expected_week USING (audience, path, weeks_ago)
GROUP BY audience, path, views, mover.expected
ORDER BY abs(views - mover.expected) DESC, path, audience
