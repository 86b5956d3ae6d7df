-- Grain: one row per page viewed in the last eight whole weeks; medians count a week without a view as 0.
WITH
  weeks AS (
    SELECT week
    FROM site_weeks
    WHERE project = $project AND days_loaded = 7 AND week < date_trunc('week', $now::TIMESTAMP)
    ORDER BY week DESC
    LIMIT 8
  ),
  days AS (
    SELECT path, day, date_trunc('week', day)::DATE AS week, human, ai
    FROM page_views
    WHERE project = $project AND date_trunc('week', day)::DATE IN (FROM weeks)
  ),
  pages AS (
    SELECT path, count(*) AS days_viewed, count(*) FILTER (human > 0) AS days_viewed_by_people
    FROM days
    GROUP BY path
  ),
  page_totals AS (
    SELECT path, week, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai
    FROM days
    GROUP BY path, week
  )
SELECT
  path,
  median(coalesce(human, 0)) AS human,
  median(coalesce(ai, 0)) AS ai,
  any_value(days_viewed) AS days_viewed,
  any_value(days_viewed_by_people) AS days_viewed_by_people,
  count(*) AS weeks
FROM pages
CROSS JOIN weeks
LEFT JOIN page_totals USING (path, week)
GROUP BY path
ORDER BY path
