UPDATE choices
SET is_flagged = 0, code = $code, facts = $facts
WHERE project = $project AND path = $path
