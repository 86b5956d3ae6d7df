-- Grain: one row per job: the one with this number, or those of the project, or all of them, oldest first.
SELECT jobs.*, closed_on, merged_into, problem AS pull_request_problem
FROM jobs
LEFT JOIN pull_requests ON pull_requests.job = jobs.id
WHERE ($id IS NULL OR jobs.id = $id) AND ($project IS NULL OR jobs.project = $project)
ORDER BY jobs.id
