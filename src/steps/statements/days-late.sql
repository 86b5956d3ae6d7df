-- Grain: one row per project, with how many of the most recent days, counted back from yesterday, have not got all of their
-- views yet: at most $most.
SELECT
  project,
  least($most::INTEGER, greatest(coalesce(delay_days, 1) - 1, if(days_awaited > 0, $yesterday::DATE - views_until, 0)))::INTEGER AS days
FROM data_delays
