-- Grain: one row per project, day and path that was viewed that day.
CREATE OR REPLACE VIEW page_views AS
SELECT projects.project, counts.day, paths.path, paths.page, counts.human, counts.ai, counts.total
FROM internal.counts AS counts
JOIN internal.projects AS projects ON projects.project_id = counts.project_id
JOIN internal.paths AS paths ON paths.path_id = counts.path_id;

COMMENT ON VIEW page_views IS 'Views of each address on each day. They are as the platform reports them. One row per project, day and path; a page may have several paths.';
COMMENT ON COLUMN page_views.project IS 'Project id on the platform';
COMMENT ON COLUMN page_views.day IS 'Day (UTC) on which the views happened';
COMMENT ON COLUMN page_views.path IS 'Address of the page, exactly as the platform sent it: untrusted text';
COMMENT ON COLUMN page_views.page IS 'Page of the address, as page_of(path) has it: /guides/install of /guides/install/ and /guides/install.md. It is the path of a page everywhere else';
COMMENT ON COLUMN page_views.human IS 'Views the platform attributes to people';
COMMENT ON COLUMN page_views.ai IS 'Views the platform attributes to AI agents and tools';
COMMENT ON COLUMN page_views.total IS 'Total views as reported by the platform; normally human + ai';
