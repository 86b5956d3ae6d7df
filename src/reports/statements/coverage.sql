-- Grain: one row with how much of the period is loaded, and what later loads changed in it and in as many days before;
-- none if no day of it is loaded. The columns are named as reports show them.
WITH history AS (
  SELECT
    min(day) AS first_day,
    (SELECT (value ->> '$')::DATE FROM platform_facts WHERE project = $project AND fact = 'first day') AS platform_since
  FROM site_days
  WHERE project = $project
),

-- A backfill loads a few days of all years first. Days that failed were tried.
untried AS (
  SELECT max(day) AS last_day
  FROM
    (SELECT unnest(generate_series(first_day, $from::DATE - 1, INTERVAL 1 DAY))::DATE AS day FROM history)
    ANTI JOIN (FROM day_loads WHERE project = $project) AS tried USING (day)
),

period AS (
  SELECT
    count(*) AS days,
    count(has_come) AS daysLoaded,
    coalesce(list(day ORDER BY day) FILTER (state IS NULL AND day > first_day), []) AS missing,
    coalesce(list(day ORDER BY day) FILTER (state IS NOT NULL AND has_come IS NULL), []) AS awaited,
    coalesce(list(day ORDER BY day) FILTER (state IS NULL AND day < first_day), []) AS before,
    coalesce(list(day ORDER BY day) FILTER (state = 'provisional' AND has_come), []) AS provisional,
    coalesce(list(day ORDER BY day) FILTER (state IN ('inconsistent', 'failed')), []) AS doubtful,
    max(loaded_at) AS latestLoad,
    coalesce(sum(human + ai), 0) AS views
  FROM
    (SELECT unnest(generate_series($from::DATE, $to::DATE, INTERVAL 1 DAY))::DATE AS day)
    LEFT JOIN (FROM day_loads WHERE project = $project AND loaded_at IS NOT NULL) AS loaded USING (day)
    LEFT JOIN (SELECT day, TRUE AS has_come FROM site_days WHERE project = $project) AS come USING (day)
    CROSS JOIN history
),

restated AS (
  SELECT
    count(DISTINCT day) FILTER (day >= $from::DATE) AS days,
    coalesce(sum(human_after - human_before) FILTER (day >= $from::DATE), 0)::BIGINT AS human,
    coalesce(sum(ai_after - ai_before) FILTER (day >= $from::DATE), 0)::BIGINT AS ai,
    coalesce(sum(human_after - human_before) FILTER (day < $from::DATE), 0)::BIGINT AS human_of_before,
    coalesce(sum(ai_after - ai_before) FILTER (day < $from::DATE), 0)::BIGINT AS ai_of_before
  FROM restatements
  WHERE project = $project AND day BETWEEN $from::DATE - ($to::DATE - $from::DATE + 1)::INTEGER AND $to::DATE
)

SELECT
  period.* EXCLUDE (views),
  first_day AS historySince,
  coalesce(first_day > platform_since, FALSE) AS hasOlder,
  coalesce(last_day + 1, if(first_day > platform_since, first_day, NULL)) AS loadedSince,
  {
    days: restated.days,
    human: human,
    ai: ai,
    ratio: if(views > human + ai, (human + ai) / (views - human - ai), NULL)
  } AS restated,
  {human: human_of_before, ai: ai_of_before} AS restatedBefore
FROM period, history, untried, restated
WHERE daysLoaded > 0
