-- Grain: one row per day ever requested, oldest first; only $day if it is given. If $since is given, final days before it
-- are left out if they lie between final days.
WITH known AS (
  SELECT *, day - (row_number() OVER (PARTITION BY state = 'final' ORDER BY day))::INTEGER AS run
  FROM day_loads
  WHERE
    project = $project
    AND ($day::DATE IS NULL OR day = $day::DATE)
)

SELECT
  day,
  state,
  loaded_at IS NOT NULL AS is_stored,
  attempted_at,
  coalesce(human, 0) AS human,
  coalesce(ai, 0) AS ai,
  coalesce(total, 0) AS total,
  pages,
  failures,
  failure,
  -- The last of the final days that follow it without a gap, or itself.
  if(state = 'final', max(day) OVER run, NULL) AS final_until
FROM known
WINDOW run AS (PARTITION BY state = 'final', run)
QUALIFY state <> 'final' OR $since::DATE IS NULL OR day >= $since::DATE OR day IN (min(day) OVER run, max(day) OVER run)
ORDER BY day
