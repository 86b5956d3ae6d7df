-- Grain: one row per project, day and path of the lake's projects.
CREATE OR REPLACE TEMP VIEW lake_views AS
SELECT project, day, path, human, ai, total
FROM page_views
SEMI JOIN lake_projects USING (project)
