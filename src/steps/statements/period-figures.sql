-- Grain: one row with the stored figures of the period.
SELECT
  count(*) AS days,
  count(*) FILTER (state = 'final') AS final,
  coalesce(sum(human), 0)::BIGINT AS human,
  coalesce(sum(ai), 0)::BIGINT AS ai
FROM site_days
WHERE project = $project AND day BETWEEN $first::DATE AND $last::DATE
