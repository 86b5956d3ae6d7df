-- Grain: one row per page that matches the search, the section and the audience, one screen of them;
-- `found` counts all. Weekly views, oldest first, are for sparklines: NULL where no day of a week is loaded.
WITH
  shown AS (
    SELECT
      * EXCLUDE (project),
      human + ai AS views,
      count(*) OVER () AS found,
      max(greatest(human, ai)) OVER () AS longest,
      row_number() OVER (
        ORDER BY
          CASE $sort
            WHEN 'human' THEN human
            WHEN 'ai' THEN ai
            WHEN 'share' THEN ai_share
            WHEN 'human_change' THEN human / days_loaded - coalesce(human_before / days_before, 0)
            WHEN 'ai_change' THEN ai / days_loaded - coalesce(ai_before / days_before, 0)
            WHEN 'path' THEN 0
            ELSE human + ai
          END DESC,
          path
      ) AS place
    FROM changes($from, $to, $shift)
    WHERE
      project = $project
      AND human + ai > 0
      AND ($search = '' OR contains(lower(path), lower($search)))
      AND ($section = '' OR section_of(path) = $section)
      AND CASE $readers
        WHEN 'human' THEN human >= 10 * ai
        WHEN 'ai' THEN ai >= 10 * human
        WHEN 'both' THEN human < 10 * ai AND ai < 10 * human
        ELSE true
      END
    QUALIFY place > $offset AND place <= $offset + $limit
  ),

  week AS (
    SELECT path, ($to::DATE - day) // 7 AS weeks_ago, sum(human) AS human, sum(ai) AS ai
    FROM page_views SEMI JOIN shown USING (path)
    WHERE project = $project AND day BETWEEN $to::DATE - 90 AND $to::DATE AND $limit <= 50
    GROUP BY ALL
  ),

  loaded AS (
    SELECT weeks_ago, count(day) AS days
    FROM
      range(13) AS weeks (weeks_ago)
      LEFT JOIN (FROM site_days WHERE project = $project AND day <= $to::DATE) ON ($to::DATE - day) // 7 = weeks_ago
    GROUP BY weeks_ago
  ),

  lines AS (
    SELECT
      path,
      -- A week that is partly loaded counts in full, at its average.
      list(if(days = 0, NULL, 7 * coalesce(week.human, 0) / days) ORDER BY weeks_ago DESC) AS human_weeks,
      list(if(days = 0, NULL, 7 * coalesce(week.ai, 0) / days) ORDER BY weeks_ago DESC) AS ai_weeks
    FROM shown CROSS JOIN loaded LEFT JOIN week USING (path, weeks_ago)
    -- The CSV of all pages has no sparklines.
    WHERE $limit <= 50
    GROUP BY path
  )

SELECT *
FROM shown LEFT JOIN lines USING (path)
ORDER BY place
