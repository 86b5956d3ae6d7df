-- Grain: one row per page that the other audience read more in the days before, most read first.
SELECT path, human, ai, if(ai > human, 'ai', 'human') AS reader, ai_share, ai_share_before
FROM page_changes
WHERE
  project = $project
  AND least(human + ai, human_before + ai_before) >= 50
  -- Nothing is compared across a day on which counting changed.
  AND total_change IS NOT NULL
  AND (ai > human) <> (ai_before > human_before)
ORDER BY human + ai DESC, path
LIMIT 15
