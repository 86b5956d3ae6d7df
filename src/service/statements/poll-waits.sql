-- Grain: one row that says whether any job or message is waiting to be polled, sent, or settled
-- after a crash. Planned jobs count only if $apply is set. When no job is active, a failed poll is
-- repeated once: without a successful one, its failure would never end.
SELECT
  EXISTS (
    FROM agent_jobs
    WHERE
      state = 'submitting'
      OR (state = 'planned' AND $apply)
      OR (
        (state = 'active' OR next_poll_at IS NOT NULL)
        -- As `nextPoll` has it.
        AND coalesce(
          next_poll_at <= $now::TIMESTAMP
          OR next_poll_at > $now::TIMESTAMP + if(note IS NULL, INTERVAL 5 MINUTE, INTERVAL 1 DAY),
          true
        )
      )
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
