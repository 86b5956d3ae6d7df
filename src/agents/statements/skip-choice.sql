UPDATE page_choices SET is_flagged = false, code = $code, facts = $facts WHERE project = $project AND path = $path
