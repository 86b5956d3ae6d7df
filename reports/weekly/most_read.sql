-- Grain: one row per page that is among the fifty most viewed of the week, by people, by AI or by
-- both, most viewed first.
WITH top AS (
  SELECT path, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai
  FROM page_views
  WHERE project = $project AND day BETWEEN $from::DATE AND $to::DATE
  GROUP BY path
  HAVING sum(human + ai) > 0
  QUALIFY
    least(
      row_number() OVER (ORDER BY sum(human) DESC, path),
      row_number() OVER (ORDER BY sum(ai) DESC, path),
      row_number() OVER (ORDER BY sum(human + ai) DESC, path)
    ) <= 50
)

SELECT
  top.path,
  any_value(top.human) AS human,
  any_value(top.ai) AS ai,
  coalesce(sum(earlier.human) FILTER (earlier.day >= $from::DATE - 7), 0)::BIGINT AS human_before,
  coalesce(sum(earlier.ai) FILTER (earlier.day >= $from::DATE - 7), 0)::BIGINT AS ai_before,
  coalesce(bool_and(earlier.day IS NULL), TRUE) AS first_seen
FROM
  top
  LEFT JOIN page_views AS earlier ON
    earlier.project = $project
    AND earlier.path = top.path
    AND earlier.day < $from::DATE
    AND earlier.human + earlier.ai > 0
GROUP BY top.path
ORDER BY any_value(top.human) + any_value(top.ai) DESC, top.path
