-- Grain: one row: the pages that people skipped, as JSON.
SELECT
  json_group_array(
    json_object(
      'project', project,
      'path', path,
      'skipped_at', skipped_at,
      'skipped_until', skipped_until
    )
    ORDER BY project, path
  ) AS rows
FROM skips
