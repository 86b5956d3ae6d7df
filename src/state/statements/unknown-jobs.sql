UPDATE jobs
SET state = 'unknown', note = $note
WHERE state = 'sending'
RETURNING id AS job
