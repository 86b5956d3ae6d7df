-- Under a limit, whoever sends counts first, in this one statement, so that no two processes use the last request.
INSERT INTO requests (key, minute, requests, refused)
SELECT $key, $minute, $requests, $refused
WHERE
  $limit IS NULL
  OR $requests + (SELECT coalesce(sum(requests), 0) FROM requests WHERE key = $key AND minute > $since) <= $limit
ON CONFLICT (key, minute) DO UPDATE SET requests = requests + excluded.requests, refused = refused + excluded.refused
