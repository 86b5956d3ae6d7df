DELETE FROM notes WHERE project = $project
