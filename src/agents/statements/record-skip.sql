INSERT INTO page_skips BY NAME
SELECT $project AS project, $path AS path, $now::TIMESTAMP AS skipped_at, $until::DATE AS skipped_until
