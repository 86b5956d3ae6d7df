-- Grain: one row when the first day of the project is known, else none.
SELECT first_day AS day FROM history_starts WHERE project = $project
