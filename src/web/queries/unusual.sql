-- Grain: one row per page and audience whose views in a short range differ from what is expected of the days before, as
-- the macro `changes` defines it, largest difference first. Nothing is expected of a page without views before.
SELECT
  audience,
  path,
  if(audience = 'ai', ai, human) AS views,
  coalesce(if(audience = 'ai', ai_low, human_low), 0) AS expected_low,
  coalesce(if(audience = 'ai', ai_high, human_high), 0) AS expected_high,
  round((expected_low + expected_high) / 2)::BIGINT AS expected
FROM changes($from, $to, $shift, per := 'page') CROSS JOIN (VALUES ('human'), ('ai')) AS audiences (audience)
WHERE
  project = $project
  AND ($section = '' OR section_of(path) = $section)
  AND CASE
    WHEN days_before = 0 OR (total_before > 0 AND total_change IS NULL) THEN false
    WHEN if(audience = 'ai', ai_before, human_before) = 0 THEN views >= 20
    ELSE if(audience = 'ai', ai_is_unusual, human_is_unusual) AND greatest(views, expected) >= 20
  END
ORDER BY abs(views - expected) DESC, path, audience DESC
LIMIT 100
