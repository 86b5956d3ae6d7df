-- Forgets the answers of `movers` for the week that are no longer up to date, and those for weeks long before it.
DELETE FROM kept_movers
WHERE
  week < $week::DATE - 7
  OR (week = $week::DATE AND (project, inputs) NOT IN (SELECT (project, inputs) FROM movers_inputs($week)))
