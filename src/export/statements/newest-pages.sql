-- Grain: one row per project with a stored day.
SELECT project, arg_max(pages, day) AS pages FROM day_loads WHERE pages IS NOT NULL GROUP BY project
