-- Grain: one row. Whether a step ended otherwise than when the attached `publication` was made.
WITH
  live AS (SELECT step, arg_max(outcome, started_at) AS outcome FROM main.runs WHERE step <> 'publish' GROUP BY step),
  published AS (
    SELECT step, arg_max(outcome, started_at) AS outcome
    FROM publication.runs
    WHERE step <> 'publish'
    GROUP BY step
  )
SELECT coalesce(bool_or(live.outcome IS DISTINCT FROM published.outcome), false) AS differs
FROM live
FULL JOIN published USING (step)
