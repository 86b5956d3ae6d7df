-- Grain: one row per stored day, oldest first. Final days before $since are left out if the days before and after them are
-- final too, and have views or none as they have.
WITH known AS (
  SELECT
    day,
    state,
    checked_at AS attempted_at,
    human,
    ai,
    total,
    pages,
    nights_in_doubt AS failures,
    problem AS failure,
    lead((day - 1, state, total > 0)) OVER turn IS NOT DISTINCT FROM (day, state, total > 0) AS goes_on
  FROM days
  WHERE project = $project
  WINDOW turn AS (ORDER BY day)
  QUALIFY
    state <> 'final'
    OR day >= $since::DATE
    OR NOT goes_on
    OR lag((day + 1, state, total > 0)) OVER turn IS DISTINCT FROM (day, state, total > 0)
)

-- `days` counts the day and those that were left out after it.
SELECT *, if(goes_on, lead(day) OVER (ORDER BY day) - day, 1) AS days
FROM known
ORDER BY day
