-- Grain: one row per project and day that is stored, so that a day without views can be told from one never loaded.
CREATE OR REPLACE TEMP VIEW lake_days AS
SELECT project, day, state, loaded_at, human, ai, total, pages
FROM day_loads
SEMI JOIN lake_projects USING (project)
WHERE loaded_at IS NOT NULL
