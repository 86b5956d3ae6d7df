-- Grain: one row for the project's latest check, or none if it was never checked.
SELECT verified_at FROM verifications WHERE project = $project ORDER BY verified_at DESC LIMIT 1
