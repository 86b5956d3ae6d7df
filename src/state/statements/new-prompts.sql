-- Grain: one row that says whether a job that a person approved, or a message, was planned after the poll step last began.
SELECT
  EXISTS (
    SELECT 1
    FROM job_changes AS change
    JOIN jobs ON jobs.id = change.job
    LEFT JOIN messages ON messages.id = change.message
    WHERE
      change.to_state = 'planned'
      AND change.changed_at
      > coalesce((SELECT max(started_at) FROM runs WHERE step = 'poll' AND started_at <= $now), '')
      AND CASE
        WHEN change.message IS NULL THEN jobs.state = 'planned' AND jobs.is_approved
        ELSE messages.state = 'planned'
      END
  ) AS waits
