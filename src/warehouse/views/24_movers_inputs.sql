-- Grain: one row per project whose seven days from `week_start` are loaded. `inputs` is a digest of all that `movers` reads.
CREATE OR REPLACE MACRO movers_inputs(week_start, project_id := NULL) AS TABLE
WITH
  input AS (
    SELECT project, hash('loaded', day, human, ai, total, pages) AS digest, day >= week_start::DATE AS is_in_week
    FROM day_loads SEMI JOIN site_days USING (project, day)
    WHERE project = coalesce(project_id, project) AND day BETWEEN week_start::DATE - 84 AND week_start::DATE + 6
    UNION ALL
    SELECT project, hash('restated', day, restated_at), false
    FROM restatements
    WHERE project = coalesce(project_id, project) AND day BETWEEN week_start::DATE - 84 AND week_start::DATE + 6
    UNION ALL
    SELECT project, hash('break', day, path), false
    FROM notes
    WHERE is_break AND day <= week_start::DATE + 6
  )

SELECT project, count(*) || ' ' || sum(digest::HUGEINT) AS inputs
FROM input
WHERE is_own_file()
GROUP BY project
HAVING count(*) FILTER (is_in_week) = 7;

COMMENT ON MACRO TABLE movers_inputs IS 'Whether kept_movers is up to date: FROM movers_inputs(''2026-11-09''). One row per project whose seven days from the given one are loaded; inputs is a digest of all that movers reads.';
