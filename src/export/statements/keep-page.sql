INSERT INTO unfinished_pages BY NAME
SELECT $project AS project, $day::DATE AS day, $offset AS page_offset, $response AS response
