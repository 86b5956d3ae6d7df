DELETE FROM page_choices WHERE project = $project
