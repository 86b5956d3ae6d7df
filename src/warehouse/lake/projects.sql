-- Grain: one row per project of this shard that has days.
CREATE OR REPLACE TEMP TABLE lake_projects AS
SELECT project
FROM (SELECT DISTINCT project FROM day_loads)
WHERE is_in_shard(project)
