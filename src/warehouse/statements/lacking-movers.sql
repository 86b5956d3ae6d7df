-- Grain: one row per project whose answer of `movers` for the week is not kept, or no longer up to date.
SELECT project
FROM movers_inputs($week) ANTI JOIN (FROM kept_movers WHERE week = $week::DATE) AS kept USING (project, inputs)
