-- Keeps values from the platform that were not reported this time.
UPDATE agent_jobs
SET
  state = $state,
  submitted_at = $submitted_at::TIMESTAMP,
  remote_id = coalesce($remote_id, remote_id),
  remote_status = coalesce($remote_status, remote_status),
  pr_link = coalesce($pr_link, pr_link),
  model = coalesce($model, model),
  repository = coalesce($repository, repository),
  ref = coalesce($ref, ref),
  polls = $polls,
  next_poll_at = $next_poll_at::TIMESTAMP,
  ended_at = $ended_at::TIMESTAMP,
  note = $note
WHERE id = $id
