-- Grain: one row with the views of a range and their change, as the macro `changes` defines it; `broken_on` is the last
-- day across which nothing is compared, because counting changed.
SELECT
  *,
  if(total_change IS NULL, NULL, ai_share - ai_share_before) AS share_difference,
  (
    SELECT max(day)
    FROM notes
    WHERE project = $project AND is_break AND $shift > 0 AND day > $from::DATE - $shift::INTEGER AND day <= $to::DATE
  ) AS broken_on
FROM changes($from, $to, $shift, per := 'site')
WHERE project = $project
