-- Grain: one row with the facts of a page, as the macro `changes` defines them.
SELECT
  page.* EXCLUDE (days_loaded, days_before, human, ai, is_page),
  section_of($path) AS section,
  is_page($path) AS is_page,
  first_read,
  last_read,
  site.days_loaded,
  site.days_before,
  (
    SELECT max(day)
    FROM notes
    WHERE
      project = $project
      AND is_break
      AND $path GLOB path
      AND day > $before_from::DATE
      AND day <= $to::DATE
  ) AS broken_on,
  -- A page without views on either side has no row there.
  coalesce(human, if(site.days_loaded = 0, NULL, 0)) AS human,
  coalesce(ai, if(site.days_loaded = 0, NULL, 0)) AS ai
FROM
  (SELECT min(day) AS first_read, max(day) AS last_read FROM page_views WHERE project = $project AND page = $path AND human + ai > 0)
  CROSS JOIN (SELECT days_loaded, days_before FROM changes($from, $to, $days_earlier, months_earlier := $months_earlier, per := 'site', project_id := $project) WHERE project = $project) AS site
  LEFT JOIN (FROM range_changes WHERE project = $project AND path = $path) AS page ON true
