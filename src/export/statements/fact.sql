-- Grain: one row if the fact is known and not older than `since`, otherwise none.
SELECT value FROM platform_facts WHERE project = $project AND fact = $fact AND found_at >= $since::TIMESTAMP
