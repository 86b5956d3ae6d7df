-- Grain: one row per page of the project that is skipped today.
SELECT path, skipped_at, skipped_until
FROM page_skips
WHERE project = $project AND (skipped_until IS NULL OR skipped_until > $now::TIMESTAMP::DATE)
ORDER BY path
