INSERT INTO job_changes (job, message, changed_at, from_state, to_state, cause)
VALUES ($job, $message, $now, $from, $to, $cause)
