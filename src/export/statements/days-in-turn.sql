-- Grain: the next $requests final days of a rotation, without those that were read on $on: those after $after, then the oldest.
SELECT day
FROM day_loads
WHERE
  project = $project
  AND state = 'final'
  AND attempted_at::DATE <> $on::DATE
ORDER BY coalesce(day > $after::DATE, false) DESC, day
LIMIT $requests
