-- Grain: one row if the first day of the project is known, otherwise none.
SELECT first_day AS day, found_at FROM history_starts WHERE project = $project
