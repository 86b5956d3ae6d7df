-- The section of a page: the first part of its path.
CREATE OR REPLACE MACRO section_of(path) AS '/' || split_part(path, '/', 2);

COMMENT ON MACRO section_of IS 'The section of a page, which is the first part of its path: section_of(''/guides/install'') is /guides';
