UPDATE runs
SET ended_at = $now::TIMESTAMP, outcome = $outcome, summary = $summary, resume_at = $resume_at::TIMESTAMP
WHERE run = $run AND step = $step
