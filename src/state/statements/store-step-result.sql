INSERT INTO step_results (step, basis, changes, stored_at, due_at)
VALUES ($step, $basis, $changes, $now, $dueAt)
ON CONFLICT (step) DO UPDATE
SET basis = excluded.basis, changes = excluded.changes, stored_at = excluded.stored_at, due_at = excluded.due_at
