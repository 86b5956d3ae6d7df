-- Grain: one row per project of which a day is stored.
SELECT project, arg_max(pages, day) AS pages FROM day_loads WHERE pages IS NOT NULL GROUP BY project
