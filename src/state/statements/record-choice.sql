INSERT INTO choices (project, path, chosen_at, is_flagged, code, facts, weekly_human, weekly_ai)
VALUES ($project, $path, $chosen_at, $is_flagged, $code, $facts, $weekly_human, $weekly_ai)
