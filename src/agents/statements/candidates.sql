-- Grain: one row per page with enough views in its typical week, the most viewed first. That week is the median, by the
-- views of people and AI together, of the last eight full weeks, or the average of the two in the middle. Weeks
-- without views count as 0. The first page is always among the rows, with the number of all pages.
WITH
  weeks AS (
    SELECT week, row_number() OVER (ORDER BY week DESC) AS age, least(8, count(*) OVER ()) AS known
    FROM site_weeks
    WHERE project = $project AND is_whole AND week < date_trunc('week', $now::TIMESTAMP)
    ORDER BY week DESC
    LIMIT 8
  ),
  -- A filter on days lets DuckDB skip parts of the file; one on weeks would not.
  days AS (SELECT week, week + weekday::INTEGER AS day FROM weeks CROSS JOIN range(7) AS of_week (weekday)),
  page_week AS (
    SELECT
      page AS path,
      week,
      sum(human)::BIGINT AS human,
      sum(ai)::BIGINT AS ai,
      -- A bit for each day that was viewed: counting distinct days takes three times as long.
      bit_count(bit_or(1 << (day - week)::INTEGER)) AS days,
      bit_count(coalesce(bit_or(1 << (day - week)::INTEGER) FILTER (human > 0), 0)) AS human_days
    FROM page_views JOIN days USING (day)
    WHERE project = $project
    GROUP BY page, week
  ),
  sorted AS (
    SELECT
      path,
      sum(days)::BIGINT AS days_viewed,
      sum(human_days)::BIGINT AS days_viewed_by_people,
      list_reverse_sort(list({views: human + ai, human: human, ai: ai})) AS by_views,
      coalesce(sum(human + ai) FILTER (week = (SELECT max(week) FROM weeks)), 0) AS latest_views
    FROM page_week
    GROUP BY path
  ),
  typical AS (
    SELECT
      * EXCLUDE (by_views),
      (coalesce(by_views[(known + 1) // 2].human, 0) + coalesce(by_views[known // 2 + 1].human, 0)) / 2 AS weekly_human,
      (coalesce(by_views[(known + 1) // 2].ai, 0) + coalesce(by_views[known // 2 + 1].ai, 0)) / 2 AS weekly_ai
    FROM sorted CROSS JOIN (SELECT count(*) AS known FROM weeks)
  ),
  ranked AS (
    SELECT
      * EXCLUDE (known, latest_views),
      row_number() OVER (ORDER BY weekly_human + weekly_ai DESC, path) AS rank,
      count(*) OVER () AS all_pages,
      weekly_human + weekly_ai >= $minWeeklyViews AND weekly_human + weekly_ai > 0 AS has_enough,
      -- As a page that has moved: it has lost more than three quarters of its usual views.
      4 * latest_views < weekly_human + weekly_ai AS is_gone
    FROM typical
    QUALIFY has_enough OR rank = 1
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
  to_json(list({week: week, human: coalesce(human, 0), ai: coalesce(ai, 0)} ORDER BY week)) AS weeks
FROM
  ranked
  CROSS JOIN weeks
  LEFT JOIN page_week USING (path, week)
  LEFT JOIN across_break USING (path)
GROUP BY ALL
ORDER BY rank
