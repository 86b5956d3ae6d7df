-- Grain: one row per audience and page, the two whose views rose and the two whose views fell most
-- since the week before, with their views on the fourteen days, oldest first.
WITH page_day AS (
  FROM
    (
      UNPIVOT (
        SELECT page AS path, day, sum(human) AS human, sum(ai) AS ai
        FROM page_views
        WHERE project = $project AND day BETWEEN $from::DATE - 7 AND $to::DATE
        GROUP BY page, day
      )
      ON human, ai INTO NAME audience VALUE views
    )
),

page AS (
  SELECT audience, path, sum(if(day >= $from::DATE, views, -views)) AS change
  FROM page_day
  GROUP BY audience, path
  QUALIFY
    least(
      row_number() OVER (PARTITION BY audience ORDER BY change DESC, path),
      row_number() OVER (PARTITION BY audience ORDER BY change, path)
    ) <= 2
)

SELECT
  audience,
  path,
  is_page(path) AS is_page,
  list(coalesce(views, 0)::BIGINT ORDER BY day) AS days
FROM
  page
  CROSS JOIN (SELECT unnest(generate_series($from::DATE - 7, $to::DATE, INTERVAL 1 DAY))::DATE AS day)
  LEFT JOIN page_day USING (audience, path, day)
GROUP BY audience, path
ORDER BY audience, any_value(abs(change)) DESC, path
