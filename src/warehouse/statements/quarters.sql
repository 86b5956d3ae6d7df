-- Grain: one row per project and quarter with views, in the order in which they are published.
SELECT DISTINCT project, date_trunc('quarter', day)::DATE AS quarter FROM main.page_views ORDER BY project, quarter
