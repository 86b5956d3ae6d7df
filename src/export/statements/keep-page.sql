INSERT INTO unfinished_pages BY NAME
SELECT $project AS project, $day::DATE AS day, 0 AS page_offset, $response AS response
