-- Keeps what the platform reported of the agent, and did not report this time.
UPDATE agent_jobs
SET
  state = $state,
  submitted_at = $submitted_at::TIMESTAMP,
  remote_id = $remote_id,
  remote_status = $remote_status,
  pr_link = $pr_link,
  model = coalesce($model, model),
  repository = coalesce($repository, repository),
  ref = coalesce($ref, ref),
  polls = $polls,
  next_poll_at = $next_poll_at::TIMESTAMP,
  ended_at = $ended_at::TIMESTAMP,
  note = $note
WHERE id = $id
