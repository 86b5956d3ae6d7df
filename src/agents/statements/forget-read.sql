DELETE FROM code_host_reads WHERE repository = $repository
