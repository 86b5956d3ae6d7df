INSERT INTO job_transitions BY NAME
SELECT
  $job::INTEGER AS job,
  $message::INTEGER AS message,
  (SELECT count(*) + 1 FROM job_transitions WHERE job = $job)::INTEGER AS number,
  $now::TIMESTAMP AS changed_at,
  $from AS from_state,
  $to AS to_state,
  $cause AS cause
