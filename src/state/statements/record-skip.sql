INSERT INTO skips (project, path, skipped_at, skipped_until)
VALUES ($project, $path, $now, $until)
ON CONFLICT DO UPDATE SET skipped_at = excluded.skipped_at, skipped_until = excluded.skipped_until
