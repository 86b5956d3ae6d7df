-- Grain: one row per address of a page that was viewed in the range, the most viewed first.
SELECT path, human, ai FROM page_addresses($path, $from, $to) WHERE project = $project
