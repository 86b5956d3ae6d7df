-- Grain: at most one row.
SELECT *
FROM emails
WHERE attempt = $attempt
