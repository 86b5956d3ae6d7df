-- Grain: one row per project and stored day, which distinguishes a day without views from a missing one.
CREATE OR REPLACE TEMP VIEW lake_days AS
SELECT project, day, state, loaded_at AT TIME ZONE 'UTC' AS loaded_at, human, ai, total, pages
FROM day_loads
SEMI JOIN lake_projects USING (project)
WHERE loaded_at IS NOT NULL
