-- Grain: one row per page of the project that an open pull request of others changes.
SELECT path, min(link) AS link FROM page_changes WHERE project = $project AND changed_on IS NULL GROUP BY path
