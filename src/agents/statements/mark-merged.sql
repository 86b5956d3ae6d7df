-- Grain: one row, the job whose pull request was merged.
UPDATE agent_jobs SET merged_on = $merged_on::DATE WHERE id = $id
