INSERT INTO kept_pages (project, day, page_offset, response)
VALUES ($project, $day, $offset, $response)
