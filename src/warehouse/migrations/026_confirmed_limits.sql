-- Version 0.3.0 took a single refusal, even one of an offset, for the largest page.
DELETE FROM platform_facts WHERE fact = 'paging';

COMMENT ON COLUMN platform_facts.found_at IS 'When it was found (UTC). Limits need two witnesses, and are believed for 30 days';
