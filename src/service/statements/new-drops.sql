-- Grain: one row per project, audience and drop that began in the last seven days whose views have come, with the name
-- of its alert. Days that
-- dropped within a week of each other are one drop, which keeps the name under which it was reported.
WITH
  dropped AS (FROM dropped_days($last_day)),

  reported AS (
    SELECT project, period, split_part(period, ' ', 2) AS audience, try_cast(split_part(period, ' ', 3) AS DATE) AS day
    FROM (SELECT unnest($sent::JSON::STRUCT(project VARCHAR, period VARCHAR)[], max_depth := 2))
    WHERE starts_with(period, 'drop ')
  )

SELECT
  dropped.*,
  coalesce(
    (
      SELECT min(period)
      FROM reported
      WHERE
        reported.project = dropped.project
        AND reported.audience = dropped.audience
        AND abs(reported.day - dropped.day) <= 7
    ),
    'drop ' || audience || ' ' || day
  ) AS period
FROM dropped JOIN data_delays USING (project)
WHERE
  day > $last_day::DATE - 7 - coalesce(delay_days - 1, days_awaited)
  AND NOT EXISTS (
    FROM dropped AS earlier
    WHERE
      earlier.project = dropped.project
      AND earlier.audience = dropped.audience
      AND dropped.day - earlier.day BETWEEN 1 AND 7
  )
