-- Grain: one row, with the time of the project's latest check; NULL if it was never checked.
SELECT max(verified_at) AS verified_at FROM verifications WHERE project = $project
