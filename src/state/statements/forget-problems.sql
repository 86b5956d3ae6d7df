UPDATE pull_requests
SET problem = NULL
WHERE problem IS NOT NULL AND job IN (SELECT id FROM jobs WHERE project = $project)
