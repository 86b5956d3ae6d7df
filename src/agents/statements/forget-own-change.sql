DELETE FROM page_changes
WHERE project = $project AND path = $path AND changed_on = $changed_on::DATE AND link IS NULL
