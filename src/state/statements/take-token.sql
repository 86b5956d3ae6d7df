UPDATE worker
SET token = token + 1, pid = $pid, command = $command, since = $since
RETURNING token
