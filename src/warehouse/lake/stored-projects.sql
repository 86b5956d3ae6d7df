-- Grain: one row per project with stored data.
SELECT project FROM page_views
UNION
SELECT project FROM day_loads
ORDER BY project
