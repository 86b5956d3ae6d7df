-- Grain: one row per page that moved, the farthest from what was expected first, with the audience
-- that moved further: its full weeks of the last thirteen, oldest first, and their expected ranges.
WITH moved AS (
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
  FROM movers($from, project_id := $project)
),

full_week AS (
  SELECT ($from::DATE - day + 6) // 7 AS ago
  FROM site_days
  WHERE project = $project AND day BETWEEN $from::DATE - 84 AND $to::DATE
  GROUP BY ago
  HAVING count(*) = 7
),

page_week AS (
  SELECT page AS path, ($from::DATE - day + 6) // 7 AS ago, sum(human) AS human, sum(ai) AS ai
  FROM page_views SEMI JOIN moved ON moved.path = page_views.page
  WHERE project = $project AND day BETWEEN $from::DATE - 84 AND $to::DATE
  GROUP BY ALL
),

expected_week AS (
  SELECT path, ($from::DATE - expected.week) // 7 AS ago, expected.low, expected.high
  FROM (SELECT path, unnest(expected_weeks) AS expected FROM moved)
),

shown_week AS (
  SELECT
    moved.*,
    ago,
    coalesce(page_week.human, 0)::BIGINT AS human_views,
    coalesce(page_week.ai, 0)::BIGINT AS ai_views,
    median(human_views) FILTER (ago > 0) OVER of_page AS human_usual,
    median(ai_views) FILTER (ago > 0) OVER of_page AS ai_usual,
    low,
    high
  FROM
    moved
    CROSS JOIN full_week
    LEFT JOIN page_week USING (path, ago)
    LEFT JOIN expected_week USING (path, ago)
  WINDOW of_page AS (PARTITION BY path)
)

SELECT
  path,
  further AS audience,
  human_expected,
  ai_expected,
  human,
  ai,
  -- Without an audience for which the page kept its views while those of most others changed.
  if(human >= greatest(human_expected, 1.25 * human_usual) OR human <= least(human_expected, human_usual / 1.25), ['human'], [])
  || if(ai >= greatest(ai_expected, 1.25 * ai_usual) OR ai <= least(ai_expected, ai_usual / 1.25), ['ai'], []) AS changed,
  list({ago: ago, views: if(further = 'ai', ai_views, human_views), low: low, high: high} ORDER BY ago DESC) AS weeks
FROM shown_week
GROUP BY path, further, human_expected, ai_expected, human, ai, human_usual, ai_usual, distance
ORDER BY distance DESC, path
