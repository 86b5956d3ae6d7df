-- Grain: one row with the views of a range and their change from the days before. Changes compare
-- views per loaded day, so missing days do not matter.
WITH
  now AS (
    SELECT coalesce(sum(human), 0)::BIGINT AS human, coalesce(sum(ai), 0)::BIGINT AS ai, count(*) AS days_loaded
    FROM site_days
    WHERE project = $project AND day BETWEEN $from::DATE AND $to::DATE
  ),

  before AS (
    SELECT coalesce(sum(human), 0)::BIGINT AS human, coalesce(sum(ai), 0)::BIGINT AS ai, count(*) AS days_loaded
    FROM site_days
    WHERE project = $project AND $shift > 0 AND day BETWEEN $from::DATE - $shift::INTEGER AND $to::DATE - $shift::INTEGER
  )

SELECT
  now.human,
  now.ai,
  now.days_loaded,
  before.days_loaded AS days_before,
  before.human AS human_before,
  before.ai AS ai_before,
  (now.human / nullif(now.days_loaded, 0)) / nullif(before.human / nullif(before.days_loaded, 0), 0) - 1 AS human_change,
  (now.ai / nullif(now.days_loaded, 0)) / nullif(before.ai / nullif(before.days_loaded, 0), 0) - 1 AS ai_change,
  now.ai / nullif(now.human + now.ai, 0) AS share,
  now.ai / nullif(now.human + now.ai, 0) - before.ai / nullif(before.human + before.ai, 0) AS share_difference
FROM now CROSS JOIN before
