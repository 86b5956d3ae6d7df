-- Grain: one row per table, view and macro; with a name, only that one, with its columns.
WITH
  columns AS (
    SELECT table_name AS name, list({name: column_name, type: data_type, comment: comment} ORDER BY column_index) AS columns
    FROM duckdb_columns()
    WHERE NOT internal
    GROUP BY table_name
  ),
  described AS (
    SELECT table_name AS name, 'table' AS kind, comment FROM duckdb_tables() WHERE table_name <> 'schema_version'
    UNION ALL
    SELECT view_name, 'view', comment FROM duckdb_views() WHERE NOT internal
    UNION ALL
    SELECT function_name || '(' || array_to_string(parameters, ', ') || ')', 'macro', comment
    FROM duckdb_functions()
    WHERE NOT internal
  )
SELECT name, kind, comment, if($name IS NULL, NULL, columns) AS columns
FROM described LEFT JOIN columns USING (name)
WHERE $name IS NULL OR name = $name OR starts_with(name, $name || '(')
ORDER BY kind DESC, name
