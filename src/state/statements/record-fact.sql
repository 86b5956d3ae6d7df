INSERT OR REPLACE INTO platform_facts (project, fact, value, found_at)
VALUES ($project, $fact, $value, $now)
