-- Grain: one row per stored day, oldest first; only $day if it is given. If $since is given, final days before it
-- are left out if the days before and after them are final too, and have views or none as they have.
WITH known AS (
  SELECT
    day,
    state,
    attempted_at,
    human,
    ai,
    total,
    pages,
    failures,
    failure,
    lead((day - 1, state, total > 0)) OVER turn IS NOT DISTINCT FROM (day, state, total > 0) AS goes_on
  FROM day_loads
  WHERE
    project = $project
    AND ($day::DATE IS NULL OR day = $day::DATE)
  WINDOW turn AS (ORDER BY day)
  QUALIFY
    state <> 'final'
    OR $since::DATE IS NULL
    OR day >= $since::DATE
    OR NOT goes_on
    OR lag((day + 1, state, total > 0)) OVER turn IS DISTINCT FROM (day, state, total > 0)
)

-- `days` counts the day and those that were left out after it.
SELECT *, if(goes_on, lead(day) OVER (ORDER BY day) - day, 1) AS days
FROM known
ORDER BY day
