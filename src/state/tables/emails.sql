-- Grain: one row: all emails, as JSON.
SELECT
  json_group_array(
    json_object(
      'report', report,
      'project', project,
      'period', period,
      'recipient', recipient,
      'state', state,
      'via', via,
      'message_id', message_id,
      'attempts', attempts,
      'tried_at', tried_at,
      'settled_at', settled_at,
      'next_attempt_at', next_attempt_at,
      'note', note,
      'days_covered', days_covered,
      'human', human,
      'ai', ai
    )
    ORDER BY tried_at, attempt
  ) AS rows
FROM emails
