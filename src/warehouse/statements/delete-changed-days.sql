DELETE FROM publication.page_views
WHERE
  day BETWEEN (SELECT min(day) FROM changed_days) AND (SELECT max(day) FROM changed_days)
  AND (project, day) IN (SELECT (project, day) FROM changed_days)
