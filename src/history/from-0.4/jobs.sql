-- Grain: one row per job, as the state has it. `submitted_at` is the time of its last attempt.
SELECT
  job.id,
  listed.reference,
  job.project,
  listed.path,
  CASE job.state WHEN 'unconfirmed' THEN 'unknown' WHEN 'submitting' THEN 'sending' ELSE job.state END AS state,
  -- Whoever planned it wanted it to be sent.
  job.state = 'planned' AS is_approved,
  job.reason,
  job.prompt,
  job.planned_at,
  job.submitted_at,
  job.remote_id,
  job.remote_status,
  job.pr_link,
  job.model,
  job.repository,
  job.ref,
  job.polls,
  job.next_poll_at,
  job.ended_at,
  job.note,
  job.merged_on,
  coalesce(job.weekly_human, 0) AS weekly_human,
  coalesce(job.weekly_ai, 0) AS weekly_ai,
  job.trend,
  to_json(coalesce(job.weeks, []))::VARCHAR AS weeks
FROM agent_jobs AS job JOIN jobs AS listed ON listed.id = job.id
ORDER BY job.id
