-- Grain: one row: what kind of database this is, and how many tables, indexes and triggers it has.
SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) AS objects
FROM pragma_application_id, pragma_user_version
