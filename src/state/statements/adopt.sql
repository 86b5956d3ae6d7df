UPDATE workspace
SET machine = $machine, host = $host, path = $path, attempt = max(attempt, $attempt)
