-- Grain: one row per report, project, period and recipient; addresses are compared without case. `tried_at` is the time of
-- its last attempt. What 0.4 wrote to a file counted as sent.
SELECT * REPLACE (if(state = 'sent' AND via = 'outbox', 'written', state) AS state)
FROM deliveries
QUALIFY row_number() OVER (PARTITION BY report, project, period, lower(recipient) ORDER BY state = 'sent' DESC, tried_at DESC) = 1
ORDER BY tried_at
