-- Keeps what `movers` answers for the week, for the projects for which it is not kept.
INSERT INTO kept_movers
SELECT project, $week::DATE, inputs, coalesce(list(mover) FILTER (mover.path IS NOT NULL), [])
FROM
  (FROM movers_inputs($week) ANTI JOIN (FROM kept_movers WHERE week = $week::DATE) AS kept USING (project))
  LEFT JOIN movers($week) AS mover USING (project)
GROUP BY project, inputs
