INSERT INTO page_changes BY NAME
SELECT $project AS project, $path AS path, $link AS link, $changed_on::DATE AS changed_on
