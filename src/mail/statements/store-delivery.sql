INSERT INTO deliveries BY NAME
SELECT
  $report AS report,
  $project AS project,
  $period AS period,
  $recipient AS recipient,
  $state AS state,
  $via AS via,
  $message_id AS message_id,
  $attempts::INTEGER AS attempts,
  $tried_at::TIMESTAMP AS tried_at,
  $settled_at::TIMESTAMP AS settled_at,
  $next_attempt_at::TIMESTAMP AS next_attempt_at,
  $note AS note,
  $days_covered::INTEGER AS days_covered,
  $human::BIGINT AS human,
  $ai::BIGINT AS ai
