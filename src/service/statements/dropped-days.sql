-- Grain: one row per project, audience and day that fell, of the last fifteen days.
FROM dropped_days($last_day)
