UPDATE agent_messages SET state = $state, submitted_at = $submitted_at::TIMESTAMP, note = $note WHERE id = $id
