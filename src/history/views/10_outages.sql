-- Grain: one row per project and day on which the platform counted nothing, although the same weekday usually has views, and
-- there were some before.
-- `is_filled` if they came after all. Only here is defined what an outage is.
CREATE OR REPLACE VIEW internal.outages AS
WITH
  empty AS (
    SELECT project, day, false AS is_filled
    FROM days
    WHERE total = 0
    UNION ALL
    -- Where views of later days had come before, these were not just late, as those of all days of a slow platform are.
    SELECT DISTINCT project, day, true
    FROM restatements AS filled JOIN days USING (project, day)
    WHERE
      total_before = 0
      AND total > 0
      AND EXISTS (
        FROM days AS later ANTI JOIN (FROM restatements WHERE total_before = 0) AS late USING (project, day)
        WHERE later.project = filled.project AND later.day > filled.day AND first_loaded_at::DATE < restated_at::DATE AND total > 0
      )
  ),

  -- Days without views are left out, so that a long outage does not become what is usual.
  usual AS (
    SELECT project, isodow(day) AS weekday, 4 * year(day) + quarter(day) AS quarter, median(total) AS views
    FROM days
    WHERE total > 0
    GROUP BY ALL
  ),

  -- Before its first views, the site did not exist.
  born AS (SELECT project, min(day) AS viewed_from FROM days WHERE total > 0 GROUP BY project),

  -- Half a year before and after, in whole quarters, because many days may be empty.
  around AS (
    SELECT project, day, is_filled, isodow(day) AS weekday, 4 * year(day) + quarter(day) + quarters AS quarter
    FROM (FROM empty JOIN born USING (project) WHERE day >= viewed_from) CROSS JOIN range(-2, 3) AS quarters (quarters)
  )

SELECT project, day, any_value(is_filled) AS is_filled
FROM around JOIN usual USING (project, weekday, quarter)
GROUP BY ALL
HAVING median(views) >= 20;
