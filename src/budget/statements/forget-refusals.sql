-- Neither their pauses count anymore, nor the requests of others that they showed.
UPDATE request_uses
SET requests = 0, paused_until = NULL
WHERE bucket = $bucket AND cause = 'refused'
