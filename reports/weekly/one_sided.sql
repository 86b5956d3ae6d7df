-- Grain: one row with the pages that people read and AI rarely does, and the reverse: the five most viewed of each.
SELECT
  coalesce(list({path: path, human: human, ai: ai} ORDER BY human DESC, path) FILTER (audience = 'human'), [])[:5] AS human,
  coalesce(list({path: path, human: human, ai: ai} ORDER BY ai DESC, path) FILTER (audience = 'ai'), [])[:5] AS ai
FROM one_sided($from, $to, project_id := $project)
WHERE is_page(path)
