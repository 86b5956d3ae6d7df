INSERT INTO jobs (
  reference, project, path, state, is_approved, reason, prompt, planned_at, weekly_human, weekly_ai, trend, weeks
)
VALUES (
  $reference, $project, $path, 'planned', $is_approved, $reason, $prompt, $planned_at, $weekly_human, $weekly_ai, $trend, $weeks
)
RETURNING id
