-- Grain: one row per page that had a few views in the last eight weeks that are loaded. Anyone can visit a made-up address.
WITH
  -- A filter on days lets DuckDB skip parts of the file.
  days AS (
    SELECT last_day - days_back::INTEGER AS day
    FROM (SELECT max(day) AS last_day FROM site_days WHERE project = $project AND day < $now::DATE) CROSS JOIN range(56) AS of_weeks (days_back)
  )
SELECT page AS path
FROM page_views JOIN days USING (day)
WHERE project = $project
GROUP BY page
HAVING sum(human + ai) >= 8
