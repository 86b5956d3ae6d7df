-- Grain: one row per block of requests or refusal.
SELECT epoch_ms(used_at)::DOUBLE AS used_ms, requests FROM request_uses
