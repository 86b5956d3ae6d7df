-- Grain: one row, with the time of the project's latest check before $before, if that is given; NULL if there is none.
SELECT max(verified_at) AS verified_at
FROM verifications
WHERE project = $project AND ($before IS NULL OR verified_at < $before)
