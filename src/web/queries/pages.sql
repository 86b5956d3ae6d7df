-- Grain: one row per page, or per section, that matches the filters, one screen of them; `found` counts all, and the
-- `all_` columns add them up. `files` are the views of files and system addresses, which only their own list has. Weekly views, oldest first, are for sparklines: NULL where no day of a week is loaded.
WITH
  moved AS (
    SELECT path, bool_or(audience = 'human') AS human_moved, bool_or(audience = 'ai') AS ai_moved
    FROM (SELECT unnest(from_json(coalesce($moved, '[]'), '[{"path":"VARCHAR","audience":"VARCHAR"}]'), recursive := true))
    GROUP BY path
  ),

  page AS (
    SELECT
      * EXCLUDE (project, human_moved, ai_moved),
      if($moved IS NULL OR $per <> 'page', NULL, coalesce(human_moved, false)) AS human_moved,
      if($moved IS NULL OR $per <> 'page', NULL, coalesce(ai_moved, false)) AS ai_moved,
      human + ai AS views,
      -- As in `changes`: totals are compared if all days are loaded.
      if(
        days_loaded = $to::DATE - $from::DATE + 1 AND days_before = $before_to::DATE - $before_from::DATE + 1,
        1,
        days_loaded / nullif(days_before, 0)
      ) AS all_sides,
      -- Nothing is compared across a day on which counting changed.
      if(total_before > 0 AND total_change IS NULL, NULL, all_sides) AS sides,
      round(human - coalesce(human_before, 0) * sides)::BIGINT AS human_gained,
      round(ai - coalesce(ai_before, 0) * sides)::BIGINT AS ai_gained
    FROM range_changes LEFT JOIN moved USING (path)
    WHERE project = $project
  ),

  -- Of the sitemap, without a view. The history may have a page by its path from the site's address or the host's.
  unread AS (
    SELECT listed AS path, 0 AS human, 0 AS ai, 0 AS views, true AS is_page
    FROM
      (SELECT unnest(from_json($listed, '["VARCHAR"]')) AS listed)
      ANTI JOIN (
        SELECT coalesce(nullif(if(starts_with(path || '/', $base || '/'), substr(path, len($base) + 1), path), ''), '/') AS listed
        FROM page
        WHERE views > 0
      ) USING (listed)
  ),

  matching AS (
    SELECT
      *,
      is_page <> ($only = 'files') AND CASE $only
        WHEN 'gone' THEN views = 0
        WHEN 'new' THEN views > 0 AND is_new
        WHEN 'moved' THEN human_moved OR ai_moved
        WHEN 'unread' THEN is_unread
        ELSE views > 0
      END AS is_listed
    FROM (SELECT *, false AS is_unread FROM page UNION ALL BY NAME SELECT *, true AS is_unread FROM unread)
    WHERE
      ($search = '' OR contains(lower(path), lower($search)))
      AND ($section = '' OR section_of(path) = $section)
      AND (($min_share = 0 AND $max_share = 1) OR ai_share BETWEEN $min_share AND $max_share)
      AND CASE $readers
        WHEN 'human' THEN path IN (SELECT path FROM one_sided($from, $to, per := $per, project_id := $project) WHERE audience = 'human')
        WHEN 'ai' THEN path IN (SELECT path FROM one_sided($from, $to, per := $per, project_id := $project) WHERE audience = 'ai')
        WHEN 'both' THEN human < 10 * ai AND ai < 10 * human
        ELSE true
      END
  ),

  total AS (
    SELECT
      count(*) FILTER (is_listed) AS found,
      max(greatest(human, ai)) FILTER (is_listed) AS longest,
      sum(human)::BIGINT AS all_human,
      sum(ai)::BIGINT AS all_ai,
      sum(ai) / nullif(sum(human + ai), 0) AS all_share,
      -- Nothing is compared across a day on which counting changed.
      bool_or(total_before > 0 AND total_change IS NULL) AS is_broken,
      if(is_broken, NULL, sum(human) / nullif(sum(human_before), 0) / any_value(all_sides) - 1) AS all_human_change,
      if(is_broken, NULL, sum(ai) / nullif(sum(ai_before), 0) / any_value(all_sides) - 1) AS all_ai_change
    FROM matching
    -- A sum of all pages is compared with all, including those that are gone.
    WHERE is_listed OR $only = '' AND is_page
  ),

  other AS (SELECT coalesce(sum(views), 0)::BIGINT AS files FROM matching WHERE NOT is_page),

  ranked AS (
    SELECT
      *,
      CASE $sort
        WHEN 'human' THEN human
        WHEN 'ai' THEN ai
        WHEN 'share' THEN ai_share
        WHEN 'human_change' THEN human_gained
        WHEN 'ai_change' THEN ai_gained
        WHEN 'path' THEN 0
        ELSE views
      END AS key
    FROM matching
    WHERE is_listed
  ),

  shown AS (
    SELECT
      * EXCLUDE (key, is_listed, is_unread, is_page, all_sides, sides),
      $per = 'section' AS is_section,
      row_number() OVER (
        ORDER BY
          if($order = 'asc', key, -key) NULLS LAST,
          if($sort = 'path' AND $order <> 'asc', path, NULL) DESC,
          if($sort = 'path', 0, human_before + ai_before) DESC NULLS LAST,
          path
      ) AS place
    FROM ranked
    QUALIFY place > $offset AND place <= $offset + $limit
  ),

  week AS (
    SELECT if($per = 'page', path, section_of(path)) AS path, ($to::DATE - day) // 7 AS weeks_ago, sum(human) AS human, sum(ai) AS ai
    FROM page_views SEMI JOIN shown ON shown.path = if($per = 'page', page_views.page, section_of(page_views.page))
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
      list(if(days = 0, NULL, 7 * coalesce(week.ai, 0) / days) ORDER BY weeks_ago DESC) AS ai_weeks,
      -- Both have one scale.
      greatest(1, list_max(human_weeks), list_max(ai_weeks)) AS highest_week
    FROM shown CROSS JOIN loaded LEFT JOIN week USING (path, weeks_ago)
    -- The CSV of all pages has no sparklines.
    WHERE $limit <= 50
    GROUP BY path
  )

SELECT *
FROM shown LEFT JOIN lines USING (path) CROSS JOIN total CROSS JOIN other
ORDER BY place
