-- Grain: one row per project and page that a person skipped.
SELECT * FROM page_skips ORDER BY project, path
