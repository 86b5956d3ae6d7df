-- Grain: one row per day, week or month of a range, with the views of a page, of a section, or of the site without either,
-- per loaded day, and those of the days that it is compared with; NULL where no day is loaded. Days are compared on the same
-- weekday, $shift days earlier, and months with months.
WITH
  viewed AS (
    -- Without a path, this reads nothing.
    SELECT day, sum(human) AS human, sum(ai) AS ai
    FROM page_views SEMI JOIN (SELECT $path AS page WHERE $path IS NOT NULL) USING (page)
    WHERE project = $project AND day BETWEEN least($from::DATE, $before_from::DATE) AND $to::DATE
    GROUP BY day
    UNION ALL
    SELECT day, sum(human), sum(ai)
    FROM page_views
    WHERE
      project = $project
      AND $section <> ''
      AND section_of(page) = $section
      AND day BETWEEN least($from::DATE, $before_from::DATE) AND $to::DATE
    GROUP BY day
    UNION ALL
    SELECT day, human, ai
    FROM site_days
    WHERE project = $project AND $path IS NULL AND $section = ''
  ),

  days AS (
    SELECT
      calendar.day::DATE AS day,
      if(loaded.day IS NULL, NULL, coalesce(viewed.human, 0)) AS human,
      if(loaded.day IS NULL, NULL, coalesce(viewed.ai, 0)) AS ai,
      loaded.state
    FROM
      generate_series(least($from::DATE, $before_from::DATE), $to::DATE, INTERVAL 1 DAY) AS calendar (day)
      LEFT JOIN site_days AS loaded ON loaded.project = $project AND loaded.day = calendar.day
      LEFT JOIN viewed ON viewed.day = calendar.day
  ),

  now AS (
    SELECT
      date_trunc($grain, day) AS period,
      min(day) AS first,
      max(day) AS last,
      sum(human)::BIGINT AS human_views,
      sum(ai)::BIGINT AS ai_views,
      avg(human) AS human,
      avg(ai) AS ai,
      sum(ai) / nullif(sum(human) + sum(ai), 0) AS share,
      count(*) AS days,
      count(human) AS loaded,
      count(*) - count(human) AS missing,
      count(*) FILTER (state <> 'final') AS provisional
    FROM days
    WHERE day >= $from::DATE
    GROUP BY period
  ),

  before AS (
    SELECT
      date_trunc(
        $grain,
        if($grain = 'month' AND $months_earlier IS NOT NULL, day + to_months($months_earlier::INTEGER), day + $shift::INTEGER)
      ) AS period,
      min(day) AS first_before,
      max(day) AS last_before,
      avg(human) AS human_before,
      avg(ai) AS ai_before
    FROM days
    WHERE day BETWEEN $before_from::DATE AND $before_to::DATE
    GROUP BY period
  )

SELECT * EXCLUDE (period)
FROM now LEFT JOIN before USING (period)
ORDER BY first
