-- Grain: one row per statement that gives a view of the current database the comment of the attached tables of its name.
WITH
  described AS (
    SELECT table_name, format('VIEW "{}"', table_name) AS target, comment FROM duckdb_tables()
    UNION
    SELECT table_name, format('COLUMN "{}"."{}"', table_name, column_name), comment FROM duckdb_columns()
  )

SELECT format('COMMENT ON {} IS ''{}''', target, replace(comment, '''', '''''')) AS statement
FROM described
SEMI JOIN duckdb_views() ON view_name = table_name AND database_name = current_database()
WHERE comment IS NOT NULL
