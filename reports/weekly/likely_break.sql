-- Grain: one row if counting probably changed in the two weeks to the end of the range.
SELECT project, day, from_audience, to_audience, share
FROM likely_breaks($to)
WHERE project = $project
ORDER BY share DESC
LIMIT 1
