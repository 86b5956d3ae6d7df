-- Grain: one row per page viewed in the last eight full weeks. Weeks without views count as 0.
WITH
  weeks AS (
    SELECT week, row_number() OVER (ORDER BY week DESC) AS age, least(8, count(*) OVER ()) AS known
    FROM site_weeks
    WHERE project = $project AND days_loaded = 7 AND week < date_trunc('week', $now::TIMESTAMP)
    ORDER BY week DESC
    LIMIT 8
  ),
  -- A filter on days lets DuckDB skip parts of the file; one on weeks would not.
  days AS (SELECT week, week + weekday::INTEGER AS day FROM weeks CROSS JOIN range(7) AS of_week (weekday)),
  page_week AS (
    SELECT
      path,
      week,
      sum(human)::BIGINT AS human,
      sum(ai)::BIGINT AS ai,
      count(*) AS days,
      count(*) FILTER (human > 0) AS human_days
    FROM page_views JOIN days USING (day)
    WHERE project = $project
    GROUP BY path, week
  ),
  pages AS (
    SELECT path, sum(days)::BIGINT AS days_viewed, sum(human_days)::BIGINT AS days_viewed_by_people
    FROM page_week
    GROUP BY path
  ),
  cells AS (
    SELECT
      pages.*,
      weeks.week,
      coalesce(page_week.human, 0) AS human,
      coalesce(page_week.ai, 0) AS ai,
      weeks.age <= known // 2 AS is_newer_half,
      weeks.age > known - known // 2 AS is_older_half
    FROM pages
    CROSS JOIN weeks
    LEFT JOIN page_week USING (path, week)
  )
SELECT
  path,
  any_value(days_viewed) AS days_viewed,
  any_value(days_viewed_by_people) AS days_viewed_by_people,
  median(human) AS weekly_human,
  median(ai) AS weekly_ai,
  rank() OVER (ORDER BY median(human) DESC) AS human_rank,
  rank() OVER (ORDER BY median(ai) DESC) AS ai_rank,
  sum(ai) / nullif(sum(human), 0) AS ai_per_human,
  sum(human + ai) FILTER (is_newer_half) / nullif(sum(human + ai) FILTER (is_older_half), 0) - 1 AS trend,
  list({week: week, human: human, ai: ai} ORDER BY week) AS weeks,
  any_value(leaving) AS leaving
FROM
  cells
  LEFT JOIN (
    SELECT path, {human_change: human_change, ai_change: ai_change} AS leaving
    FROM people_leaving($now)
    WHERE project = $project
  ) AS left_by_people USING (path)
GROUP BY path
ORDER BY path
