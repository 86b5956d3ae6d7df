-- Grain: one row per project, audience and day with a drop, in the last fifteen days.
FROM dropped_days($last_day)
