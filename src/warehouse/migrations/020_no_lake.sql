-- What 0.3 recorded for its lake, and about it.
DROP TABLE lake_months;

ALTER TABLE workspace DROP COLUMN lake;

ALTER TABLE workspace DROP COLUMN lakes;

ALTER TABLE workspace DROP COLUMN publications;

ALTER TABLE workspace DROP COLUMN claim;

ALTER TABLE workspace DROP COLUMN claim_after;

ALTER TABLE workspace DROP COLUMN claim_needed;

ALTER TABLE workspace DROP COLUMN claim_needed_at;

-- 0.3 looked at a few settled days again each night, and recorded the last one.
DELETE FROM platform_facts WHERE fact = 'looked at';

COMMENT ON TABLE platform_facts IS 'What was learned about the platform: the first day with views, its largest page and the order of its rows, the first day it keeps, how far the search for the first day has got. One row per project and fact.';
COMMENT ON COLUMN platform_facts.fact IS 'first day, paging, kept from, search or not additive';
