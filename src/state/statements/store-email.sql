INSERT INTO emails (
  report, project, period, recipient, state, via, message_id, attempt, attempts,
  tried_at, settled_at, next_attempt_at, note, days_covered, human, ai
)
VALUES (
  $report, $project, $period, $recipient, $state, $via, $message_id, $attempt, $attempts,
  $tried_at, $settled_at, $next_attempt_at, $note, $days_covered, $human, $ai
)
ON CONFLICT (report, project, period, recipient) DO UPDATE SET
  recipient = excluded.recipient,
  state = excluded.state,
  via = excluded.via,
  message_id = excluded.message_id,
  attempt = excluded.attempt,
  attempts = excluded.attempts,
  tried_at = excluded.tried_at,
  settled_at = excluded.settled_at,
  next_attempt_at = excluded.next_attempt_at,
  note = excluded.note,
  days_covered = excluded.days_covered,
  human = excluded.human,
  ai = excluded.ai
