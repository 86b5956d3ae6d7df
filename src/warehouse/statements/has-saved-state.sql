-- Grain: one row if the attached database `saved` carries a state; otherwise none.
SELECT table_name
FROM duckdb_tables()
WHERE database_name = 'saved' AND schema_name = 'internal' AND table_name = 'saved_state'
