-- Grain: one row per event in a range that charts of the site, of a section or of a page mark: an agent job or a note.
SELECT day, text, is_break
FROM
  (
    SELECT
      coalesce(merged_on, ended_at::DATE, planned_at::DATE) AS day,
      concat('Job ', id, if(merged_on IS NULL, concat(' ', state), ' merged'), ': ', path) AS text,
      path,
      false AS is_pattern,
      false AS is_break
    FROM jobs
    WHERE project = $project
    UNION ALL
    SELECT day, concat(if(is_break, 'Counting changed: ', ''), text), path, true, is_break
    FROM notes
    WHERE project = $project
  )
WHERE
  day BETWEEN date_trunc('week', $from::DATE) AND $to::DATE
  AND ($path IS NULL OR if(is_pattern, $path GLOB path, path = $path))
  AND ($section = '' OR if(is_pattern, concerns_section(path, $section), section_of(path) = $section))
ORDER BY day, text
