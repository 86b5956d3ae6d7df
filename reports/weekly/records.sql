-- Grain: one row with the highest values of all full weeks before the reported one.
SELECT count(*) AS weeks, max(human) AS human, max(ai) AS ai
FROM
  (
    SELECT sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai
    FROM site_days
    WHERE project = $project AND day < $from::DATE
    GROUP BY ($from::DATE - day + 6) // 7
    HAVING count(*) = 7
  )
