DELETE FROM page_skips WHERE project = $project AND path = $path
