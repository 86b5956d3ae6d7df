-- Grain: one row per path that was viewed on the day.
SELECT path_id, human::DOUBLE, ai::DOUBLE, total::DOUBLE
FROM internal.counts
JOIN internal.projects USING (project_id)
WHERE project = $project AND day = $day::DATE
