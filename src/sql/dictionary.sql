-- Grain: one row per table, view and macro, with its columns, the most useful first.
WITH
  columns AS (
    SELECT
      table_name AS name,
      list({name: column_name, type: data_type, comment: coalesce(comment, '')} ORDER BY column_index) AS columns
    FROM duckdb_columns()
    WHERE NOT internal AND database_name = current_database() AND schema_name <> 'internal'
    GROUP BY table_name
  ),

  described AS (
    SELECT view_name AS name, 'view' AS kind, comment FROM duckdb_views()
    WHERE NOT internal AND database_name = current_database() AND schema_name <> 'internal'
    UNION ALL
    SELECT function_name || '(' || array_to_string(parameters, ', ') || ')', 'macro', comment
    FROM duckdb_functions()
    WHERE NOT internal AND database_name = current_database() AND schema_name <> 'internal'
    UNION ALL
    SELECT table_name, 'table', comment FROM duckdb_tables()
    WHERE database_name = current_database() AND schema_name <> 'internal'
  )

SELECT name, kind, coalesce(comment, '') AS comment, coalesce(columns, []) AS columns
FROM described LEFT JOIN columns USING (name)
ORDER BY list_position(['view', 'macro', 'table'], kind), name
