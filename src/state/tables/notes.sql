-- Grain: one row: all notes, as JSON.
SELECT
  json_group_array(
    json_object(
      'project', project,
      'day', day,
      'text', text,
      'path', path,
      'is_break', is_break
    )
    ORDER BY project, day, text
  ) AS rows
FROM notes
