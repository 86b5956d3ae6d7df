-- Grain: one row per page read so far of a day that the hourly limit interrupted.
CREATE TABLE unfinished_pages (
  project VARCHAR NOT NULL,
  day DATE NOT NULL,
  page_offset INTEGER NOT NULL,
  response VARCHAR NOT NULL
);

COMMENT ON TABLE unfinished_pages IS 'Pages of days that need more requests than the hourly limit allows, kept until the rest is read. One row per page.';
COMMENT ON COLUMN unfinished_pages.project IS 'Project id on the platform';
COMMENT ON COLUMN unfinished_pages.day IS 'Day (UTC)';
COMMENT ON COLUMN unfinished_pages.page_offset IS 'Number of rows before this page';
COMMENT ON COLUMN unfinished_pages.response IS 'Response of the platform, as JSON';
