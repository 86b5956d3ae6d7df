INSERT INTO history_starts BY NAME
SELECT $project AS project, $first_day::DATE AS first_day, $now::TIMESTAMP AS found_at
