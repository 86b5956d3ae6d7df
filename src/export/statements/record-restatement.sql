INSERT INTO restatements BY NAME
SELECT
  project,
  day,
  $now::TIMESTAMP AS restated_at,
  human AS human_before,
  $human AS human_after,
  ai AS ai_before,
  $ai AS ai_after,
  total AS total_before,
  $total AS total_after,
  $pages_changed AS pages_changed
FROM day_loads
WHERE project = $project AND day = $day::DATE
