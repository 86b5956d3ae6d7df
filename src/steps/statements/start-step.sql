INSERT INTO runs BY NAME
SELECT $run AS run, $step AS step, $now::TIMESTAMP AS started_at, 'running' AS outcome
