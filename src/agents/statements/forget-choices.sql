-- Grain: one row per page of the project's choice before this one.
DELETE FROM page_choices WHERE project = $project
