-- Grain: one row. Whether the attached `publication` was written by this version of tables, views and comments.
SELECT
  count(*) = 2
  AND count(DISTINCT comment) = 1
  AND (SELECT max(version) FROM main.schema_version) = (SELECT max(version) FROM publication.schema_version) AS is_same
FROM duckdb_tables()
WHERE table_name = 'schema_version' AND database_name IN (current_database(), 'publication')
