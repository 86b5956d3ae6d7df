-- Grain: one row, with what the attached `published` history has and this database lacks.
WITH
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
