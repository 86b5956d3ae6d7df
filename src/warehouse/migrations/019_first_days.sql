INSERT INTO platform_facts
SELECT project, 'first day', to_json(first_day::VARCHAR), found_at FROM history_starts;

DROP TABLE history_starts;

COMMENT ON TABLE platform_facts IS 'What was learned about the platform: the first day with views, its largest page and the order of its rows, the first day it keeps, how far the search for the first day has got, the last day looked at again. One row per project and fact.';
COMMENT ON COLUMN platform_facts.fact IS 'first day, paging, kept from, search, looked at or not additive';
