INSERT INTO workspace (only, id, machine, host, path)
VALUES (1, $id, $machine, $host, $path)
