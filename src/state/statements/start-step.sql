INSERT INTO runs (run, step, started_at, outcome)
VALUES ($run, $step, $now, 'running')
