-- Grain: one row if the attached `published` history has runs that this older state of the same database lacks, with
-- what it lacks in all; otherwise none.
WITH
  -- The run that published it was unfinished when the copy was made. It may have been pruned here since.
  newest AS (
    SELECT run, step, started_at
    FROM published.runs
    WHERE
      started_at = (SELECT max(started_at) FROM published.runs)
      OR (
        step = 'publish'
        AND ended_at IS NULL
        AND started_at >= coalesce((SELECT min(started_at) FROM main.runs), '-infinity'::TIMESTAMP)
      )
  ),
  -- At least the latest thousand runs of each step are kept.
  kept AS (
    SELECT step, min(started_at) AS kept_from
    FROM (FROM main.runs QUALIFY row_number() OVER (PARTITION BY step ORDER BY started_at DESC) <= 1000)
    GROUP BY step
    HAVING count(*) = 1000
  ),
  newest_lacking AS (
    SELECT *
    FROM newest
    ANTI JOIN main.runs USING (run, step, started_at)
    LEFT JOIN kept USING (step)
    WHERE started_at >= coalesce(kept_from, '-infinity'::TIMESTAMP)
  ),
  is_empty AS (SELECT NOT EXISTS (FROM main.runs) AND NOT EXISTS (FROM main.day_loads) AS answer),
  -- The history of another workspace has nothing in common with this one.
  is_related AS (
    SELECT
      EXISTS (FROM published.runs SEMI JOIN main.runs USING (run, step, started_at))
      OR EXISTS (FROM published.day_loads SEMI JOIN main.day_loads USING (project, day, loaded_at)) AS answer
  ),
  runs AS (SELECT * FROM published.runs ANTI JOIN main.runs USING (run, step, started_at)),
  days AS (
    SELECT p.day
    FROM published.day_loads AS p
    ANTI JOIN main.day_loads AS l
      ON l.project = p.project AND l.day = p.day AND l.loaded_at >= p.loaded_at
    WHERE p.loaded_at IS NOT NULL
  )
SELECT
  (SELECT count(*) FROM runs) AS runs,
  (SELECT min(started_at) FROM runs) AS since,
  (SELECT count(DISTINCT day) FROM days) AS days,
  (SELECT min(day) FROM days) AS first_day,
  (SELECT max(day) FROM days) AS last_day
FROM is_empty, is_related
WHERE EXISTS (FROM newest_lacking) AND (is_empty.answer OR is_related.answer)
