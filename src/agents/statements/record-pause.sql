INSERT INTO agent_pauses BY NAME
SELECT $project AS project, $now::TIMESTAMP AS paused_at, $until::TIMESTAMP AS paused_until, $cause AS cause
