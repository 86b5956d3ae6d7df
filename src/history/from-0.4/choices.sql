-- Grain: one row per project and page considered in the latest selection.
SELECT * FROM page_choices WHERE code <> 'held-out' ORDER BY project, path
