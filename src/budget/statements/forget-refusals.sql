-- Neither their pauses count any more, nor the requests of others that they showed.
UPDATE request_uses
SET requests = 0, paused_until = NULL
WHERE bucket = $bucket AND cause = 'refused'
