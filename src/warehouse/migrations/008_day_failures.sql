ALTER TABLE day_loads ADD COLUMN failures INTEGER DEFAULT 0;

COMMENT ON COLUMN day_loads.failures IS 'How many attempts in a row failed or did not add up; 0 if the last one succeeded';

UPDATE day_loads SET failures = 1 WHERE state IN ('failed', 'inconsistent');

-- Servers that cap their pages made such days final.
UPDATE day_loads
SET
  state = 'inconsistent',
  failures = 1,
  failure = 'its pages and its totals differ by more than 5%; it is read again later'
WHERE
  state = 'final'
  AND loaded_at IS NOT NULL
  AND greatest(abs(unattributed_total), abs(unattributed_human) + abs(unattributed_ai)) > 0.05 * greatest(1, total);
