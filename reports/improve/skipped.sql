-- Grain: one row per reason why the latest selection left pages out, with their number. Leaves out pages
-- that have or had a job: jobs.sql lists those.
SELECT choice.code, min(choice.facts) AS facts, count(*) AS pages
FROM
  choices AS choice
  ANTI JOIN jobs AS job
    ON job.project = choice.project AND job.path = choice.path AND job.planned_at >= choice.chosen_at
WHERE
  choice.project = $project
  AND choice.code NOT IN ('flagged', 'next', 'has-job', 'had-job', 'in-review')
GROUP BY choice.code
ORDER BY pages DESC, choice.code
