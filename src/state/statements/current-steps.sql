-- Grain: one row per step whose last result is still right: nothing that it depends on has changed, and no later run of
-- the step ended in another way than done. Results and runs dated in the future come from a wrong clock, and are ignored.
SELECT step
FROM step_results
WHERE
  basis = $basis
  AND (changes IS NULL OR changes = (SELECT changes FROM workspace))
  AND stored_at <= $now
  AND due_at > $now
  AND NOT EXISTS (
    SELECT 1
    FROM runs
    WHERE runs.step = step_results.step AND started_at > stored_at AND started_at <= $now AND outcome <> 'done'
  )
