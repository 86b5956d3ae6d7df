-- As long as the state stays the same too, nobody needs the day again: loaded_at is that of the stored rows.
UPDATE day_loads
SET
  state = $state,
  attempted_at = $now::TIMESTAMP,
  loaded_at = if(state = $state, loaded_at, $now::TIMESTAMP),
  failure = NULL,
  failures = 0
WHERE project = $project AND day = $day::DATE
RETURNING pages
