-- Grain: one row, the block whose rest was not spent.
UPDATE request_uses SET requests = requests - $unused::INTEGER WHERE id = $id
