-- Grain: one row per audience and page, the two whose views rose and the two whose views fell most
-- since the week before, with their views on the fourteen days, oldest first.
WITH page_change AS (
  FROM
    (
      UNPIVOT (
        SELECT
          page AS path,
          sum(if(day >= $from::DATE, human, -human)) AS human,
          sum(if(day >= $from::DATE, ai, -ai)) AS ai
        FROM page_views
        WHERE project = $project AND day BETWEEN $from::DATE - 7 AND $to::DATE
        GROUP BY page
      )
      ON human, ai INTO NAME audience VALUE change
    )
),

-- Few pages change as much as the second of each kind, and only these are sorted.
least_change AS (
  SELECT audience, list_min(max(change, 2)) AS rise, list_max(min(change, 2)) AS fall
  FROM page_change
  GROUP BY audience
),

page AS (
  SELECT audience, path, change
  FROM page_change JOIN least_change USING (audience)
  WHERE change >= rise OR change <= fall
  QUALIFY
    least(
      row_number() OVER (PARTITION BY audience ORDER BY change DESC, path),
      row_number() OVER (PARTITION BY audience ORDER BY change, path)
    ) <= 2
),

-- Of these few pages only: of each day, all would take longer.
page_day AS (
  SELECT page AS path, day, sum(human) AS human, sum(ai) AS ai
  FROM page_views SEMI JOIN page ON page.path = page_views.page
  WHERE project = $project AND day BETWEEN $from::DATE - 7 AND $to::DATE
  GROUP BY page, day
)

SELECT
  audience,
  path,
  is_page(path) AS is_page,
  list(coalesce(if(audience = 'human', human, ai), 0)::BIGINT ORDER BY day) AS days
FROM
  page
  CROSS JOIN (SELECT unnest(generate_series($from::DATE - 7, $to::DATE, INTERVAL 1 DAY))::DATE AS day)
  LEFT JOIN page_day USING (path, day)
GROUP BY audience, path
ORDER BY audience, any_value(abs(change)) DESC, path
