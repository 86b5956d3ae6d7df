-- Grain: one row per page and audience whose views on a few days differ from what is usual on these weekdays, as the macro
-- `day_differences` defines it, largest difference first.
SELECT audience, path, views, usual, difference, site_difference, coalesce(share, 0) AS share
FROM day_differences($from, last_day := $to)
WHERE project = $project AND ($section = '' OR section_of(path) = $section) AND is_page(path) AND abs(difference) >= 5
LIMIT 100
