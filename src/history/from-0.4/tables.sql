INSERT INTO internal.projects
SELECT row_number() OVER (ORDER BY project), project
FROM (SELECT DISTINCT project FROM old.page_views);

INSERT INTO internal.paths
SELECT row_number() OVER (ORDER BY project_id, page, path), project_id, path, page
FROM (SELECT project_id, path, any_value(page) AS page FROM old.page_views JOIN internal.projects USING (project) GROUP BY ALL);

INSERT INTO internal.counts
SELECT project_id, day, path_id, human, ai, total
FROM old.page_views JOIN internal.projects USING (project) JOIN internal.paths USING (project_id, path)
ORDER BY project_id, date_trunc('quarter', day), path_id, day;

-- A day whose last load failed keeps what was stored of it. It could be loaded on the day after it if an export ran then.
INSERT INTO days
SELECT
  project,
  day,
  CASE WHEN state <> 'failed' THEN state WHEN loaded_at::DATE > day + 3 THEN 'final' ELSE 'provisional' END,
  least(
    loaded_at,
    coalesce((SELECT min(started_at) FROM old.runs WHERE step = 'export' AND started_at::DATE = day + 1), loaded_at)
  ),
  loaded_at,
  if(state = 'failed', loaded_at, attempted_at),
  human,
  ai,
  total,
  pages,
  unattributed_human,
  unattributed_ai,
  unattributed_total,
  if(state = 'failed', NULL, failure),
  if(state = 'inconsistent', greatest(failures, 1), 0)
FROM old.day_loads
WHERE loaded_at IS NOT NULL
ORDER BY project, day;

INSERT INTO restatements BY NAME
SELECT
  *,
  coalesce(
    (SELECT max(ended_at) FROM old.runs WHERE step = 'export' AND ended_at < restated_at),
    restated_at - INTERVAL 48 HOUR
  ) AS checked_before
FROM old.restatements
ORDER BY project, day, restated_at;
