INSERT INTO platform_facts BY NAME
SELECT $project AS project, $fact AS fact, $value AS value, $now::TIMESTAMP AS found_at
