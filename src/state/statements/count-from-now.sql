-- Requests dated in the future count from now, because it is unknown whether the clock was wrong then or is wrong now.
INSERT INTO requests (key, minute, requests, refused)
SELECT key, $minute, sum(requests), sum(refused)
FROM requests
WHERE key = $key AND minute > $minute
GROUP BY key
ON CONFLICT (key, minute) DO UPDATE SET requests = requests + excluded.requests, refused = refused + excluded.refused
