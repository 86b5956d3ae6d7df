-- Grain: one row per pause of the project's prompts that is not over.
SELECT paused_at, paused_until
FROM prompt_pauses
WHERE project = $project AND paused_at <= $latest AND paused_until > $now
