INSERT INTO internal.saved_state
VALUES ($workspace, $attempt, $database)
