-- Grain: one row with the views of the site, or of a section ($per says which), in a range and their change, as the macro
-- `changes` defines it; `broken_on` is the last day across which nothing is compared, because counting changed.
SELECT
  views.* EXCLUDE (days_loaded, days_before, human, ai),
  site.days_loaded,
  site.days_before,
  -- A section without views on either side has no row there.
  coalesce(human, if(site.days_loaded = 0, NULL, 0)) AS human,
  coalesce(ai, if(site.days_loaded = 0, NULL, 0)) AS ai,
  if(total_change IS NULL, NULL, ai_share - ai_share_before) AS share_difference,
  (
    SELECT max(day)
    FROM notes
    WHERE
      project = $project
      AND is_break
      AND ($section = '' OR concerns_section(path, $section))
      AND day > $before_from::DATE
      AND day <= $to::DATE
  ) AS broken_on,
  -- Days without any view, by which no page is judged.
  (
    SELECT coalesce(list(day::VARCHAR ORDER BY day), [])
    FROM site_days
    WHERE project = $project AND is_outage AND day BETWEEN $from::DATE AND $to::DATE
  ) AS outages
FROM
  (SELECT days_loaded, days_before FROM changes($from, $to, $days_earlier, months_earlier := $months_earlier, per := 'site', project_id := $project) WHERE project = $project) AS site
  LEFT JOIN (
    FROM range_changes
    WHERE project = $project AND ($section = '' OR path = $section)
  ) AS views ON true
