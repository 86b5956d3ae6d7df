-- Grain: one row per project and fact.
CREATE TABLE platform_facts (
  project VARCHAR NOT NULL,
  fact VARCHAR NOT NULL,
  value VARCHAR NOT NULL,
  found_at TIMESTAMP NOT NULL
);

COMMENT ON TABLE platform_facts IS 'What was learned about the platform: its largest page and the order of its rows, the first day it keeps, how far the search for the first day has got, the last day looked at again. One row per project and fact.';
COMMENT ON COLUMN platform_facts.project IS 'Project id on the platform';
COMMENT ON COLUMN platform_facts.fact IS 'paging, kept from, search, looked at or not additive';
COMMENT ON COLUMN platform_facts.value IS 'Value of the fact, as JSON';
COMMENT ON COLUMN platform_facts.found_at IS 'When it was found (UTC); limits are believed for 30 days';
