-- Grain: one row per page viewed in the last eight full weeks that has enough views, and is not gone: in the latest of
-- them it still has a quarter of its usual ones. The most viewed page is always among the rows, with what is known of all
-- pages. Weeks without views count as 0.
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
    SELECT
      path,
      sum(days)::BIGINT AS days_viewed,
      sum(human_days)::BIGINT AS days_viewed_by_people,
      list_median(list_resize(list(human), (SELECT count(*) FROM weeks), 0)) AS weekly_human,
      list_median(list_resize(list(ai), (SELECT count(*) FROM weeks), 0)) AS weekly_ai,
      sum(ai) / nullif(sum(human), 0) AS ai_per_human,
      coalesce(sum(human + ai) FILTER (week = (SELECT max(week) FROM weeks)), 0) AS latest_views
    FROM page_week
    GROUP BY path
  ),
  ranked AS (
    SELECT
      * EXCLUDE (latest_views) REPLACE (coalesce(weekly_ai / nullif(weekly_human, 0), ai_per_human) AS ai_per_human),
      4 * latest_views < weekly_human + weekly_ai AS is_gone,
      rank() OVER (ORDER BY weekly_human DESC) AS human_rank,
      rank() OVER (ORDER BY weekly_ai DESC) AS ai_rank,
      count(*) OVER () AS all_pages,
      sum(weekly_human + weekly_ai) OVER () AS all_views
    FROM pages
    QUALIFY
      (weekly_human + weekly_ai >= $minWeeklyViews AND NOT is_gone)
      OR row_number() OVER (ORDER BY weekly_human + weekly_ai DESC) = 1
  ),
  across_break AS (
    SELECT DISTINCT ranked.path, true AS is_broken
    FROM ranked JOIN notes ON ranked.path GLOB notes.path
    WHERE
      is_break
      AND project = $project
      AND day > (SELECT min(week) FROM weeks)
      AND day <= (SELECT max(week) + 6 FROM weeks)
  )
SELECT
  ranked.*,
  if(
    bool_or(is_broken),
    NULL,
    median(coalesce(human + ai, 0)) FILTER (age <= known // 2)
      / nullif(median(coalesce(human + ai, 0)) FILTER (age > known - known // 2), 0)
      - 1
  ) AS trend,
  to_json(list({week: week, human: coalesce(human, 0), ai: coalesce(ai, 0)} ORDER BY week)) AS weeks,
  any_value(leaving) AS leaving
FROM
  ranked
  CROSS JOIN weeks
  LEFT JOIN page_week USING (path, week)
  LEFT JOIN across_break USING (path)
  LEFT JOIN (
    SELECT path, {human_change: human_change, ai_change: ai_change} AS leaving
    FROM people_leaving($now)
    WHERE project = $project
  ) AS left_by_people USING (path)
GROUP BY ALL
ORDER BY path
