UPDATE worker
SET pid = NULL, command = NULL, since = NULL
WHERE token = $token
