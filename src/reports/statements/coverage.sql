-- Grain: one row with how much of the period is loaded; none if no day of it is. The columns are named as reports show them.
WITH history AS (
  SELECT
    min(day) AS first_day,
    (SELECT day FROM first_days WHERE project = $project) AS platform_since
  FROM site_days
  WHERE project = $project
),

-- A backfill loads a few days of all years first. Days that failed were tried.
untried AS (
  SELECT max(day) AS last_day
  FROM
    (SELECT unnest(generate_series(first_day, $from::DATE - 1, INTERVAL 1 DAY))::DATE AS day FROM history)
    ANTI JOIN (
      SELECT day FROM days WHERE project = $project
      UNION ALL
      SELECT day FROM day_failures WHERE project = $project
    ) AS tried USING (day)
),

period AS (
  SELECT
    count(*) AS days,
    count(has_come) AS daysLoaded,
    coalesce(list(day ORDER BY day) FILTER (state IS NULL AND day > first_day), []) AS missing,
    coalesce(list(day ORDER BY day) FILTER (state IS NOT NULL AND has_come IS NULL), []) AS awaited,
    coalesce(list(day ORDER BY day) FILTER (state IS NULL AND day < first_day), []) AS before,
    coalesce(list(day ORDER BY day) FILTER (state = 'provisional' AND has_come AND has_failed IS NULL), []) AS provisional,
    coalesce(list(day ORDER BY day) FILTER (state = 'inconsistent' OR (state IS NOT NULL AND has_failed)), []) AS doubtful,
    max(loaded_at) AS latestLoad
  FROM
    (SELECT unnest(generate_series($from::DATE, $to::DATE, INTERVAL 1 DAY))::DATE AS day)
    LEFT JOIN (FROM days WHERE project = $project) AS loaded USING (day)
    LEFT JOIN (SELECT day, TRUE AS has_failed FROM day_failures WHERE project = $project) AS failed USING (day)
    LEFT JOIN (SELECT day, TRUE AS has_come FROM site_days WHERE project = $project) AS come USING (day)
    CROSS JOIN history
)

SELECT
  period.*,
  first_day AS historySince,
  coalesce(first_day > platform_since, FALSE) AS hasOlder,
  coalesce(last_day + 1, if(first_day > platform_since, first_day, NULL)) AS loadedSince
FROM period, history, untried
WHERE daysLoaded > 0
