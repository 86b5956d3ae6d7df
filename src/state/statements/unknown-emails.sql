UPDATE emails
SET state = 'unknown', settled_at = $now, note = $note
WHERE state = 'sending'
