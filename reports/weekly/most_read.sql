-- Grain: one row per page that is among the fifty most viewed of the week, by people, by AI or by
-- both, most viewed first.
SELECT
  path,
  human,
  ai,
  coalesce(human_before, 0) AS human_before,
  coalesce(ai_before, 0) AS ai_before,
  is_new
FROM changes($from, $to)
WHERE project = $project AND human + ai > 0
QUALIFY
  least(
    row_number() OVER (ORDER BY human DESC, path),
    row_number() OVER (ORDER BY ai DESC, path),
    row_number() OVER (ORDER BY human + ai DESC, path)
  ) <= 50
ORDER BY human + ai DESC, path
