DELETE FROM pull_requests WHERE job = $job
