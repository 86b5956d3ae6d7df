UPDATE jobs
SET
  state = $state,
  attempt = $attempt,
  submitted_at = $submitted_at,
  remote_id = $remote_id,
  remote_status = $remote_status,
  pr_link = $pr_link,
  model = coalesce($model, model),
  repository = coalesce($repository, repository),
  ref = coalesce($ref, ref),
  polls = $polls,
  next_poll_at = $next_poll_at,
  ended_at = $ended_at,
  note = $note
WHERE id = $id
