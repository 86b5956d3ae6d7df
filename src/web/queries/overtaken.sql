-- Grain: one row per page that the other audience read more in the days before, most read first.
WITH
  page AS (
    SELECT
      path,
      coalesce(sum(human) FILTER (day >= $from::DATE), 0)::BIGINT AS human,
      coalesce(sum(ai) FILTER (day >= $from::DATE), 0)::BIGINT AS ai,
      coalesce(sum(human) FILTER (day <= $to::DATE - $shift::INTEGER), 0)::BIGINT AS human_before,
      coalesce(sum(ai) FILTER (day <= $to::DATE - $shift::INTEGER), 0)::BIGINT AS ai_before
    FROM page_views
    WHERE
      project = $project
      AND $shift > 0
      AND (
        day BETWEEN $from::DATE AND $to::DATE
        OR day BETWEEN $from::DATE - $shift::INTEGER AND $to::DATE - $shift::INTEGER
      )
    GROUP BY path
  )

SELECT
  path,
  human,
  ai,
  if(ai > human, 'ai', 'human') AS reader,
  ai / (human + ai) AS share,
  ai_before / (human_before + ai_before) AS share_before
FROM page
WHERE least(human + ai, human_before + ai_before) >= 50 AND (ai > human) <> (ai_before > human_before)
ORDER BY human + ai DESC, path
LIMIT 15
