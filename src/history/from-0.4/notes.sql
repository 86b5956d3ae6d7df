-- Grain: one row per project and note that concerns it.
SELECT * FROM notes ORDER BY project, day
