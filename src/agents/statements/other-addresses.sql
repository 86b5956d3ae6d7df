-- Grain: one row with the views of files and system addresses in the last full week: the three most viewed of them, and of
-- those for AI. None without a full week.
WITH
  week AS (
    SELECT max(week) AS week
    FROM site_weeks
    WHERE project = $project AND is_whole AND week < date_trunc('week', $now::TIMESTAMP)
  ),
  -- A filter on days lets DuckDB skip parts of the file; one on weeks would not.
  days AS (SELECT week + weekday::INTEGER AS day FROM week CROSS JOIN range(7) AS of_week (weekday)),
  address AS (
    SELECT page AS path, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai
    FROM page_views JOIN days USING (day)
    WHERE project = $project
    GROUP BY page
    -- Of the group: of each of its rows it would take longer.
    HAVING NOT is_page(any_value(page))
  )
SELECT
  (SELECT week FROM week) AS week,
  coalesce(sum(human + ai), 0)::BIGINT AS views,
  coalesce(list(path ORDER BY human + ai DESC, path) FILTER (NOT is_for_ai(path)), [])[:3] AS paths,
  coalesce(list({path: path, human: human, ai: ai} ORDER BY human + ai DESC, path) FILTER (is_for_ai(path)), [])[:3] AS for_ai
FROM address
HAVING (SELECT week FROM week) IS NOT NULL
