-- Grain: one row per project with loaded days in the week.
SELECT
  project,
  sum(human)::BIGINT AS human,
  sum(ai)::BIGINT AS ai,
  sum(ai) / nullif(sum(human) + sum(ai), 0) AS ai_share
FROM site_days
WHERE day BETWEEN $from::DATE AND $to::DATE
GROUP BY project
