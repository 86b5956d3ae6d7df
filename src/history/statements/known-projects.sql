-- Grain: one row per project.
SELECT project_id, project
FROM internal.projects
