-- Grain: one row per column of a table, in order, with its type.
SELECT column_name AS name, data_type AS type
FROM duckdb_columns()
WHERE database_name = current_database() AND schema_name = 'main' AND table_name = $name
ORDER BY column_index
