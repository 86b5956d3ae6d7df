-- Grain: one row per key and minute.
SELECT minute, requests FROM requests ORDER BY minute
