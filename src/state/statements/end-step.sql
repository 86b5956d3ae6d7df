UPDATE runs
SET ended_at = $now, outcome = $outcome, summary = $summary, resume_at = $resume_at
WHERE run = $run AND step = $step
