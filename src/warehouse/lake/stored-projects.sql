-- Grain: one row per project of which anything is stored.
SELECT project FROM page_views
UNION
SELECT project FROM day_loads
ORDER BY project
