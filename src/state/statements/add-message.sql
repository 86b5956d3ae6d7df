INSERT INTO messages (reference, job, state, origin, prompt, planned_at)
VALUES ($reference, $job, 'planned', $origin, $prompt, $planned_at)
RETURNING id
