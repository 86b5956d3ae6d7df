-- Grain: one row, the change of state.
INSERT INTO job_transitions BY NAME
SELECT $job::INTEGER AS job, $now::TIMESTAMP AS changed_at, $from_state AS from_state, $to_state AS to_state, $cause AS cause
