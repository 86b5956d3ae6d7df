-- Grain: one row per repository whose pull requests were read: the given one.
SELECT read_until, next_read_at FROM code_host_reads WHERE repository = $repository
