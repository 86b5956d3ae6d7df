-- Grain: one row per audience and day, from the first loaded day of the thirteen weeks. Views are
-- NULL, not zero, on days that are not loaded.
WITH loaded AS (
  SELECT day, human, ai
  FROM site_days
  WHERE project = $project AND day BETWEEN $from::DATE - 90 AND $to::DATE
),

calendar AS (
  SELECT unnest(generate_series(min(day), $to::DATE, INTERVAL 1 DAY))::DATE AS day
  FROM loaded
),

counts AS (
  SELECT calendar.day, audience, if(audience = 'Human', loaded.human, loaded.ai) AS views
  FROM
    calendar
    CROSS JOIN (VALUES ('Human'), ('AI')) AS audiences (audience)
    LEFT JOIN loaded USING (day)
),

-- An average over fewer than seven days would be skewed toward weekdays or the weekend.
averaged AS (
  SELECT
    day,
    audience,
    views,
    if(count(views) OVER seven_days = 7, round(avg(views) OVER seven_days, 1), NULL) AS average
  FROM counts
  WINDOW seven_days AS (PARTITION BY audience ORDER BY day ROWS 6 PRECEDING)
),

-- With a week of history or less there are no averages to draw, so the line shows the days
-- themselves.
drawn AS (
  SELECT
    *,
    count(average) OVER (PARTITION BY audience) > 1 AS average_drawn,
    if(average_drawn, average, views) AS line,
    coalesce(line, views) AS level
  FROM averaged
  WHERE day >= $from::DATE - 84
)

SELECT
  day,
  audience,
  views,
  average_drawn,
  line,
  level,
  -- The other audience's level on the same day, to keep the labels apart.
  sum(level) OVER (PARTITION BY day) - level AS other_level,
  day >= $from::DATE AS this_week,
  views IS NOT NULL AND day = max(if(views IS NULL, NULL, day)) OVER () AS latest
FROM drawn
ORDER BY day, audience DESC
