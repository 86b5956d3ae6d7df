INSERT INTO notes (project, day, text, path, is_break)
VALUES ($project, $day, $text, $path, $is_break)
