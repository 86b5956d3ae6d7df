INSERT INTO requests (key, minute, requests, refused)
VALUES ($key, $minute, $requests, $refused)
ON CONFLICT (key, minute) DO UPDATE SET requests = requests + excluded.requests, refused = refused + excluded.refused
