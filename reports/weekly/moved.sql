-- Grain: one row per page that moved, the five farthest from what was expected, with the audience
-- that moved further: its full weeks of the last thirteen, oldest first, and their expected ranges.
WITH page AS (
  SELECT
    path,
    CASE
      WHEN audience <> 'both' THEN audience
      WHEN abs(ai - ai_expected) > abs(human - human_expected) THEN 'ai'
      ELSE 'human'
    END AS further,
    human,
    ai,
    abs(change) AS distance,
    if(audience <> 'ai', round(human_expected), NULL)::BIGINT AS human_expected,
    if(audience <> 'human', round(ai_expected), NULL)::BIGINT AS ai_expected,
    if(further = 'ai', ai_weeks, human_weeks) AS expected_weeks
  FROM movers($from)
  WHERE project = $project
  ORDER BY distance DESC, path
  LIMIT 5
),

full_week AS (
  SELECT ($from::DATE - day + 6) // 7 AS ago
  FROM site_days
  WHERE project = $project AND day BETWEEN $from::DATE - 84 AND $to::DATE
  GROUP BY ago
  HAVING count(*) = 7
),

page_week AS (
  SELECT path, ($from::DATE - day + 6) // 7 AS ago, sum(human) AS human, sum(ai) AS ai
  FROM page_views SEMI JOIN page USING (path)
  WHERE project = $project AND day BETWEEN $from::DATE - 84 AND $to::DATE
  GROUP BY ALL
),

expected_week AS (
  SELECT path, ($from::DATE - expected.week) // 7 AS ago, expected.low, expected.high
  FROM (SELECT path, unnest(expected_weeks) AS expected FROM page)
)

SELECT
  path,
  further AS audience,
  any_value(human_expected) AS human_expected,
  any_value(ai_expected) AS ai_expected,
  page.human,
  page.ai,
  list(
    {ago: ago, views: coalesce(if(further = 'ai', page_week.ai, page_week.human), 0)::BIGINT, low: low, high: high}
    ORDER BY ago DESC
  ) AS weeks
FROM
  page
  CROSS JOIN full_week
  LEFT JOIN page_week USING (path, ago)
  LEFT JOIN expected_week USING (path, ago)
GROUP BY path, further, page.human, page.ai, distance
ORDER BY distance DESC, path
