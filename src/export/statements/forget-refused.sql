-- Days that were never stored, from before the first one that the platform keeps.
DELETE FROM day_loads
WHERE
  project = $project
  AND day < $first::DATE
  AND loaded_at IS NULL
