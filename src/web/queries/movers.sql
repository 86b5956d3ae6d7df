-- Grain: one row per page of the project that moved in the week and audience that moved, largest change
-- first.
SELECT
  moved.audience,
  path,
  section_of(path) AS section,
  if(moved.audience = 'ai', ai, human) AS views,
  round(if(moved.audience = 'ai', ai_expected, human_expected))::BIGINT AS expected,
  round(if(moved.audience = 'ai', ai_low, human_low))::BIGINT AS expected_low,
  round(if(moved.audience = 'ai', ai_high, human_high))::BIGINT AS expected_high
FROM movers($week, project_id := $project) AS mover JOIN (VALUES ('human'), ('ai')) AS moved (audience) ON mover.audience IN (moved.audience, 'both')
WHERE project = $project
ORDER BY abs(change) DESC, path, moved.audience DESC
