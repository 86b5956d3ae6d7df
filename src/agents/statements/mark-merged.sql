UPDATE agent_jobs SET merged_on = $merged_on::DATE WHERE id = $id
