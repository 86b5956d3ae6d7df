-- The page of an address. `pageOf` in src/page.ts is the same.
CREATE OR REPLACE MACRO page_of(path) AS coalesce(
  nullif(
    regexp_replace(
      regexp_replace('/' || split_part(split_part(path, '?', 1), '#', 1), '/{2,}', '/', 'g'),
      '(/|/index|\.html|\.md|\.mdx)+$',
      ''
    ),
    ''
  ),
  '/'
);

COMMENT ON MACRO page_of IS 'The page that an address belongs to. It is the path without a slash, index, .html, .md or .mdx at the end, without query and fragment, and with one slash for several. page_of(''/guides/install.md?plain=1'') is /guides/install';
