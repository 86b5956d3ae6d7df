-- Grain: one row per table of the live database except `page_views`, with its name for SQL. All schemas, because a user may
-- have made some, and the live file is written again from these tables: what is missing here would be lost.
SELECT format('"{}"."{}"', replace(schema_name, '"', '""'), replace(table_name, '"', '""')) AS name
FROM duckdb_tables()
WHERE database_name = current_database() AND NOT (schema_name = 'main' AND table_name = 'page_views')
ORDER BY name
