-- Grain: one row: the choices of the latest selection, as JSON.
SELECT
  json_group_array(
    json_object(
      'project', project,
      'path', path,
      'chosen_at', chosen_at,
      'is_flagged', is_flagged,
      'code', code,
      'facts', facts,
      'weekly_human', weekly_human,
      'weekly_ai', weekly_ai
    )
    ORDER BY project, path
  ) AS rows
FROM choices
