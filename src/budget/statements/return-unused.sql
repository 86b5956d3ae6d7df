UPDATE request_uses SET requests = requests - $unused::INTEGER WHERE id = $id
