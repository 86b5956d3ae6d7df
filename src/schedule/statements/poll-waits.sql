-- Grain: one row, whether the jobs or messages of any project wait: to be asked for, to be sent, or to be settled after
-- a crash. Planned jobs are sent by the schedule only where $apply says so. Once no job is active, a failed poll is followed
-- by one more: its failure would never be over otherwise.
SELECT
  EXISTS (
    FROM agent_jobs
    WHERE
      state = 'submitting'
      OR (state = 'planned' AND $apply)
      OR (state = 'active' AND coalesce(next_poll_at <= $now::TIMESTAMP, true))
  )
  OR EXISTS (FROM agent_messages WHERE state IN ('planned', 'submitting'))
  OR (
    NOT EXISTS (FROM agent_jobs WHERE state = 'active')
    AND coalesce(
      (
        SELECT arg_max(outcome, started_at) = 'failed'
        FROM runs
        WHERE step = 'poll' AND started_at <= $now::TIMESTAMP
      ),
      false
    )
  ) AS waits
