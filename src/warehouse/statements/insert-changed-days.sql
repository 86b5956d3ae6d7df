INSERT INTO publication.page_views
SELECT page_views.*
FROM main.page_views
SEMI JOIN changed_days USING (project, day)
WHERE day BETWEEN (SELECT min(day) FROM changed_days) AND (SELECT max(day) FROM changed_days)
ORDER BY project, date_trunc('quarter', day), page, path, day
