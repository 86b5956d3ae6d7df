UPDATE messages
SET state = 'unknown', note = $note
WHERE state = 'sending'
RETURNING job, id AS message
