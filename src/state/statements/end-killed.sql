UPDATE runs
SET outcome = 'interrupted', ended_at = $now, summary = 'the process was killed'
WHERE outcome = 'running'
