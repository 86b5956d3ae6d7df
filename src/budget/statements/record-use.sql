INSERT INTO request_uses BY NAME
SELECT
  $id AS id,
  $bucket AS bucket,
  $now::TIMESTAMP AS used_at,
  $requests::INTEGER AS requests,
  $cause AS cause,
  $paused_until::TIMESTAMP AS paused_until
