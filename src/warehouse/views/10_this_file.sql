-- Grain: one row. Macros read the current database, and check here whether it is their own.
CREATE OR REPLACE VIEW this_file AS
SELECT '{file}' AS id;

COMMENT ON VIEW this_file IS 'Identifies this file. Macros check it, because a macro of an attached file would otherwise read the current database. One row.';
COMMENT ON COLUMN this_file.id IS 'Random id, created when the file was written';
