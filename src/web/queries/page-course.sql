-- Grain: one row per week in which the page was viewed, latest first.
SELECT week, human, ai FROM page_weeks WHERE project = $project AND path = $path ORDER BY week DESC LIMIT $weeks
