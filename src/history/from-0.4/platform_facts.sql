-- Grain: one row per project and fact that was learned about the platform.
SELECT * FROM platform_facts ORDER BY project, fact
