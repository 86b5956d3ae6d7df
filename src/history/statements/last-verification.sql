-- Grain: one row, the newest check of the project; none when it was never checked.
SELECT verified_at FROM verifications WHERE project = $project ORDER BY verified_at DESC LIMIT 1
