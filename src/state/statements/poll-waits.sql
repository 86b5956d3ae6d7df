-- Grain: one row that says whether any job or message is waiting to be polled or sent. Planned jobs count if a person
-- approved them, and all of them if $sendsAll is set. When no job is active, a failed poll is repeated once: without a
-- successful one, its failure would never end.
SELECT
  EXISTS (
    SELECT 1
    FROM jobs
    WHERE
      (state = 'planned' AND (is_approved OR $sendsAll))
      OR (
        (state = 'active' OR next_poll_at IS NOT NULL)
        -- As `nextPoll` has it.
        AND (
          next_poll_at IS NULL
          OR next_poll_at <= $now
          OR next_poll_at > CASE WHEN note IS NULL THEN $latest ELSE $latestAfterError END
        )
      )
  )
  OR EXISTS (SELECT 1 FROM messages WHERE state = 'planned')
  OR (
    NOT EXISTS (SELECT 1 FROM jobs WHERE state = 'active')
    AND coalesce(
      (
        SELECT outcome = 'failed'
        FROM runs
        WHERE step = 'poll' AND started_at <= $now
        ORDER BY started_at DESC
        LIMIT 1
      ),
      0
    )
  ) AS waits
