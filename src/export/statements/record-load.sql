INSERT INTO day_loads BY NAME
SELECT
  $project AS project,
  $day::DATE AS day,
  $state AS state,
  $now::TIMESTAMP AS attempted_at,
  $now::TIMESTAMP AS loaded_at,
  $human AS human,
  $ai AS ai,
  $total AS total,
  $pages AS pages,
  $unattributed_human AS unattributed_human,
  $unattributed_ai AS unattributed_ai,
  $unattributed_total AS unattributed_total,
  $failure AS failure,
  $failures::INTEGER AS failures
