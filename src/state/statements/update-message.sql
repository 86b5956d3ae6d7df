UPDATE messages
SET state = $state, attempt = $attempt, submitted_at = $submitted_at, note = $note
WHERE id = $id
