-- Grain: one row per delivery ever attempted.
FROM deliveries ORDER BY project, report, period, recipient
