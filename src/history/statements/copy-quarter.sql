INSERT INTO internal.counts
FROM last.internal.counts
WHERE project_id = $project_id AND day BETWEEN $first::DATE AND $first::DATE + INTERVAL 3 MONTH - INTERVAL 1 DAY
ORDER BY path_id, day
