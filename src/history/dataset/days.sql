-- Grain: one row per project and stored day, which tells a day without views from a missing one.
SELECT project, day, state, loaded_at AT TIME ZONE 'UTC' AS loaded_at, human, ai, total, pages
FROM days
ORDER BY project, day
