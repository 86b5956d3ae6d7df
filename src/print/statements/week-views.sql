-- Grain: one row per project with loaded days in the week.
SELECT
  project,
  sum(human)::BIGINT AS human,
  sum(ai)::BIGINT AS ai
FROM site_days
WHERE day BETWEEN $from::DATE AND $to::DATE
GROUP BY project
