INSERT INTO prompt_pauses (project, paused_at, paused_until, cause)
VALUES ($project, $now, $until, $cause)
