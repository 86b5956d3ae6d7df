-- Grain: one row. Macros read the current database, and check here whether it is their own.
CREATE OR REPLACE VIEW internal.this_file AS
SELECT '{file}' AS id;
