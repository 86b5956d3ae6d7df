-- Grain: one row per step whose last result is still right. One that was stored in the future comes from a wrong clock.
SELECT step
FROM step_results
WHERE
  basis = $basis
  AND (changes IS NULL OR changes = (SELECT changes FROM workspace))
  AND stored_at <= $now
  AND due_at > $now
