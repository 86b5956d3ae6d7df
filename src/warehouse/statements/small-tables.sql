-- Grain: one row per table of the current database but the views of pages, with those that a user made, as `"schema"."table"`.
SELECT format('"{}"."{}"', replace(schema_name, '"', '""'), replace(table_name, '"', '""')) AS name
FROM duckdb_tables()
WHERE database_name = current_database() AND (schema_name, table_name) <> ('main', 'page_views')
ORDER BY ALL
