-- Grain: one row per step of a command.
SELECT run::VARCHAR AS run, step, outcome, epoch_ms(started_at)::DOUBLE AS started_ms FROM runs ORDER BY started_at
