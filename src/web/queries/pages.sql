-- Grain: one row per page that matches the search, the section and the audience, one screen of them;
-- `found` counts all. Weekly views, oldest first, are for sparklines.
WITH
  now AS (
    SELECT path, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai
    FROM page_views
    WHERE
      project = $project
      AND day BETWEEN $from::DATE AND $to::DATE
      AND ($search = '' OR contains(lower(path), lower($search)))
      AND ($section = '' OR starts_with(path, $section || '/') OR path = $section)
    GROUP BY path
    HAVING
      sum(human + ai) > 0
      AND CASE $readers
        WHEN 'human' THEN sum(human) >= 10 * sum(ai)
        WHEN 'ai' THEN sum(ai) >= 10 * sum(human)
        WHEN 'both' THEN sum(human) < 10 * sum(ai) AND sum(ai) < 10 * sum(human)
        ELSE true
      END
  ),

  before AS (
    SELECT path, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai
    FROM page_views
    WHERE
      project = $project
      AND $shift > 0
      AND day BETWEEN $from::DATE - $shift::INTEGER AND $to::DATE - $shift::INTEGER
    GROUP BY path
  ),

  shown AS (
    SELECT
      path,
      now.human,
      now.ai,
      now.human + now.ai AS total,
      now.ai / (now.human + now.ai) AS share,
      now.human / nullif(before.human, 0) - 1 AS human_change,
      now.ai / nullif(before.ai, 0) - 1 AS ai_change,
      before.path IS NULL AS is_new,
      count(*) OVER () AS found,
      max(greatest(now.human, now.ai)) OVER () AS longest,
      row_number() OVER (
        ORDER BY
          CASE $sort
            WHEN 'human' THEN now.human
            WHEN 'ai' THEN now.ai
            WHEN 'share' THEN now.ai / (now.human + now.ai)
            WHEN 'human_change' THEN now.human - coalesce(before.human, 0)
            WHEN 'ai_change' THEN now.ai - coalesce(before.ai, 0)
            WHEN 'path' THEN 0
            ELSE now.human + now.ai
          END DESC,
          path
      ) AS place
    FROM now LEFT JOIN before USING (path)
    QUALIFY place > $offset AND place <= $offset + $limit
  ),

  week AS (
    SELECT path, ($to::DATE - day) // 7 AS weeks_ago, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai
    FROM page_views SEMI JOIN shown USING (path)
    WHERE project = $project AND day BETWEEN $to::DATE - 90 AND $to::DATE
    GROUP BY ALL
  ),

  lines AS (
    SELECT
      path,
      list(coalesce(week.human, 0) ORDER BY weeks_ago DESC) AS human_weeks,
      list(coalesce(week.ai, 0) ORDER BY weeks_ago DESC) AS ai_weeks
    FROM shown CROSS JOIN generate_series(0, 12) AS weeks (weeks_ago) LEFT JOIN week USING (path, weeks_ago)
    GROUP BY path
  )

SELECT *
FROM shown JOIN lines USING (path)
ORDER BY place
