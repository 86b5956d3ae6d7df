-- Grain: one row. Macros read the database in use; by this they tell whether it is their own.
CREATE OR REPLACE VIEW this_file AS
SELECT '{file}' AS id;

COMMENT ON VIEW this_file IS 'Which file this is, so that a macro of an attached file refuses to answer from another. One row.';
COMMENT ON COLUMN this_file.id IS 'A random id, made when the file was written';
