INSERT INTO verifications BY NAME
SELECT
  $project AS project,
  $now::TIMESTAMP AS verified_at,
  $first::DATE AS first_day,
  $last::DATE AS last_day,
  $days_differing::INTEGER AS days_differing
