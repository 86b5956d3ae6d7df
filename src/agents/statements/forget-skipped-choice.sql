DELETE FROM page_choices WHERE project = $project AND path = $path AND code = 'skipped'
