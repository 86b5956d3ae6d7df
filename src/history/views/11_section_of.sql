-- The section of a page: the first part of its path.
CREATE OR REPLACE MACRO section_of(path) AS '/' || split_part(path, '/', 2);

COMMENT ON MACRO section_of IS 'The section of a page: the first part of its path. section_of(''/guides/install'') is /guides';

-- A pattern that begins in a section, such as /docs/a*, concerns it too.
CREATE OR REPLACE MACRO concerns_section(pattern, section) AS pattern = '*' OR section GLOB section_of(regexp_replace(pattern, '\*.*', '*'));

COMMENT ON MACRO concerns_section IS 'Whether a note is about pages of a section. For its path or pattern, concerns_section(''/guides/in*'', ''/guides'') is true';
