-- Grain: one row per page that is among the fifty most viewed of the week, by people, by AI or by
-- both, most viewed first. Without views before, 0; NULL across a break, and for a page that was first
-- viewed in the middle of the week before.
WITH
  most_read AS (
    FROM changes($from, $to)
    WHERE project = $project AND human + ai > 0
    QUALIFY
      least(
        row_number() OVER (ORDER BY human DESC, path),
        row_number() OVER (ORDER BY ai DESC, path),
        row_number() OVER (ORDER BY human + ai DESC, path)
      ) <= 50
  ),

  known AS (
    SELECT page AS path, min(day) > $from - 7 AS is_young
    FROM page_views SEMI JOIN most_read ON most_read.path = page_views.page
    WHERE project = $project AND day BETWEEN $from - 28 AND $from - 1 AND human + ai > 0
    GROUP BY page
  ),

  compared AS (
    SELECT *, is_young OR total_before > 0 AND total_change IS NULL AS is_incomparable
    FROM most_read LEFT JOIN known USING (path)
  )

SELECT
  path,
  human,
  ai,
  if(is_incomparable, NULL, coalesce(human_before, 0)) AS human_before,
  if(is_incomparable, NULL, coalesce(ai_before, 0)) AS ai_before,
  is_new
FROM compared
ORDER BY human + ai DESC, path
