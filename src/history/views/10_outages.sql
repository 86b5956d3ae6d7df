-- Grain: one row per project and day on which the platform counted nothing, although the same weekday usually has views.
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

  -- Half a year before and after. Days without views are left out, so that a long outage does not become what is usual.
  same_weekday AS (
    SELECT project, day AS empty_day, is_filled, day + 7 * weeks::INTEGER AS day
    FROM empty CROSS JOIN range(-26, 27) AS around (weeks)
    WHERE weeks <> 0
  )

SELECT project, empty_day AS day, any_value(is_filled) AS is_filled
FROM same_weekday JOIN days USING (project, day)
WHERE total > 0
GROUP BY ALL
HAVING median(total) >= 20;
