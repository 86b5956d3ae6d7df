-- Grain: one row per page with enough views in its typical week, the most viewed first. That week is the median, by the
-- views of people and AI together, of the last eight full weeks, or the average of the two in the middle. Weeks
-- without views count as 0. The first page is always among the rows, with the number of all pages. The `lately_` columns
-- are the views of the last seven complete days, or of the last two if only these say that the page is gone, and what is
-- usual for it on these weekdays.
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
      list_reverse_sort(list({views: human + ai, human: human, ai: ai})) AS by_views
    FROM page_week
    GROUP BY path
    -- Of the group: of each of its rows it would take longer.
    HAVING is_page(any_value(path))
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
      * EXCLUDE (known),
      row_number() OVER (ORDER BY weekly_human + weekly_ai DESC, path) AS rank,
      count(*) OVER () AS all_pages,
      weekly_human + weekly_ai >= $minWeeklyViews AND weekly_human + weekly_ai > 0 AS has_enough
    FROM typical
    QUALIFY has_enough OR rank = 1
  ),
  -- The last two and the last seven days whose views have come, with the same weekdays of the seven weeks before.
  span AS (
    SELECT until, length, weeks_ago, until - 7 * weeks_ago::INTEGER - days_back::INTEGER AS day
    FROM
      (
        SELECT least(views_until, views_until + days_awaited + 1 - coalesce(delay_days, 1), $now::DATE - 1) AS until
        FROM data_delays
        WHERE project = $project
      )
      CROSS JOIN (VALUES (2), (7)) AS spans (length)
      CROSS JOIN range(8) AS weeks (weeks_ago)
      CROSS JOIN range(7) AS days (days_back)
    WHERE days_back < length
  ),
  site_span AS (
    SELECT until, length, weeks_ago, sum(human + ai) AS site_views
    FROM span JOIN site_days USING (day)
    WHERE project = $project AND NOT is_outage
    GROUP BY ALL
    HAVING count(*) = length
  ),
  page_span AS (
    SELECT path, length, weeks_ago, sum(views) AS views
    FROM
      (
        SELECT page AS path, day, sum(human + ai) AS views
        FROM page_views SEMI JOIN ranked ON ranked.path = page_views.page SEMI JOIN span USING (day)
        WHERE project = $project
        GROUP BY ALL
      )
      JOIN span USING (day)
    GROUP BY ALL
  ),
  -- Usual is the median, but no more than the rest of the site has kept of its own, as on holidays.
  recent AS (
    SELECT
      path,
      length,
      any_value(until) AS until,
      any_value(views) FILTER (weeks_ago = 0) AS latest_views,
      median(views) FILTER (weeks_ago > 0)
      * least(1, coalesce(any_value(others) FILTER (weeks_ago = 0) / nullif(median(others) FILTER (weeks_ago > 0), 0), 1)) AS usual,
      -- As a page that has moved: it has lost more than three quarters. Two days tell only where many views are usual.
      4 * latest_views < usual AND (length = 7 OR usual >= 20) AS is_gone
    FROM
      (
        SELECT path, site_span.*, coalesce(page_span.views, 0) AS views, site_views - coalesce(page_span.views, 0) AS others
        FROM ranked CROSS JOIN site_span LEFT JOIN page_span USING (path, length, weeks_ago)
      )
    GROUP BY path, length
    HAVING bool_or(weeks_ago = 0) AND bool_or(weeks_ago > 0)
  ),
  lately AS (
    SELECT
      path,
      bool_or(is_gone) AS is_gone,
      first({length: length, until: until, views: latest_views, usual: usual} ORDER BY is_gone DESC, length DESC) AS span
    FROM recent
    GROUP BY path
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
  coalesce(is_gone, false) AS is_gone,
  lately.span.length AS lately_days,
  lately.span.until AS lately_until,
  lately.span.views::BIGINT AS lately_views,
  round(lately.span.usual)::BIGINT AS lately_usual,
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
  LEFT JOIN lately USING (path)
GROUP BY ALL
ORDER BY rank
