-- Grain: one row per day, week or month of a range, with the views of a page, of a section, or of the site without either,
-- per loaded day; NULL where no day is loaded.
WITH
  viewed AS (
    -- Without a path, this reads nothing.
    SELECT day, sum(human) AS human, sum(ai) AS ai
    FROM page_views SEMI JOIN (SELECT $path AS page WHERE $path IS NOT NULL) USING (page)
    WHERE
      project = $project
      AND day BETWEEN least($from::DATE, $from::DATE - $shift::INTEGER) AND $to::DATE
    GROUP BY day
    UNION ALL
    SELECT day, sum(human), sum(ai)
    FROM page_views
    WHERE
      project = $project
      AND $section <> ''
      AND section_of(page) = $section
      AND day BETWEEN least($from::DATE, $from::DATE - $shift::INTEGER) AND $to::DATE
    GROUP BY day
    UNION ALL
    SELECT day, human, ai
    FROM site_days
    WHERE project = $project AND $path IS NULL AND $section = ''
  ),

  days AS (
    SELECT
      calendar.day::DATE AS day,
      if(now.day IS NULL, NULL, coalesce(views.human, 0)) AS human,
      if(now.day IS NULL, NULL, coalesce(views.ai, 0)) AS ai,
      now.state,
      if(before.day IS NULL, NULL, coalesce(views_before.human, 0)) AS human_before,
      if(before.day IS NULL, NULL, coalesce(views_before.ai, 0)) AS ai_before
    FROM
      generate_series($from::DATE, $to::DATE, INTERVAL 1 DAY) AS calendar (day)
      LEFT JOIN site_days AS now ON now.project = $project AND now.day = calendar.day
      LEFT JOIN viewed AS views ON views.day = calendar.day
      LEFT JOIN site_days AS before
        ON before.project = $project AND before.day = calendar.day::DATE - $shift::INTEGER AND $shift > 0
      LEFT JOIN viewed AS views_before ON views_before.day = calendar.day::DATE - $shift::INTEGER
  )

SELECT
  min(day) AS first,
  max(day) AS last,
  sum(human)::BIGINT AS human_views,
  sum(ai)::BIGINT AS ai_views,
  avg(human) AS human,
  avg(ai) AS ai,
  sum(ai) / nullif(sum(human) + sum(ai), 0) AS share,
  avg(human_before) AS human_before,
  avg(ai_before) AS ai_before,
  count(*) AS days,
  count(human) AS loaded,
  count(*) - count(human) AS missing,
  count(*) FILTER (state <> 'final') AS provisional
FROM days
GROUP BY date_trunc($grain, day)
ORDER BY first
