-- Grain: one row, whether the jobs or messages of any project wait: to be asked for, to be sent, or to be settled after
-- a crash. Planned jobs are sent by the schedule only where $apply says so.
SELECT
  EXISTS (
    FROM agent_jobs
    WHERE
      state = 'submitting'
      OR (state = 'planned' AND $apply)
      OR (state = 'active' AND coalesce(next_poll_at <= $now::TIMESTAMP, true))
  )
  OR EXISTS (FROM agent_messages WHERE state IN ('planned', 'submitting')) AS waits
