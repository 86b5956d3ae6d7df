-- Grain: one row per delivery ever attempted.
SELECT *
FROM emails
ORDER BY project, report, period, recipient
