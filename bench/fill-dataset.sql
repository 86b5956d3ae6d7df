-- Inserts a simulated history in the order in which an export would have stored it.
INSERT INTO page_views
SELECT
  'prj_' || project.project,
  $first::DATE + day.day::INTEGER,
  '/docs/page-' || path.path AS path,
  '/docs/page-' || path.path AS page,
  (hash(project.project, day.day, path.path) % 90)::BIGINT,
  (hash(path.path, project.project, day.day) % 70)::BIGINT,
  (hash(project.project, day.day, path.path) % 90 + hash(path.path, project.project, day.day) % 70)::BIGINT
FROM range($days::BIGINT) AS day(day)
CROSS JOIN range($projects::BIGINT) AS project(project)
CROSS JOIN range($paths::BIGINT) AS path(path)
ORDER BY day.day, project.project
