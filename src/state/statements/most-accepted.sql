-- Grain: one row, with the most requests with the key that were accepted in any 60 minutes from $since to $until; NULL if none was sent.
SELECT max(accepted) AS most
FROM
  (
    SELECT
      sum(requests - refused) OVER (
        ORDER BY unixepoch(minute) RANGE BETWEEN 3540 PRECEDING AND CURRENT ROW
      ) AS accepted
    FROM requests
    WHERE key = $key AND minute BETWEEN $since AND $until
  )
