-- Grain: one row per page of the project that is skipped today.
SELECT path, skipped_at, skipped_until
FROM skips
WHERE project = $project AND (skipped_until IS NULL OR skipped_until > $today)
ORDER BY path
