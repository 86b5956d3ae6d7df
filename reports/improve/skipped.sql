-- Grain: one row per reason why the latest selection left pages out, with their number. Leaves out pages
-- that are newly held out, and those that have or had a job: choices.sql and jobs.sql list those.
SELECT choice.code, min(choice.facts) AS facts, count(*) AS pages
FROM
  page_choices AS choice
  ANTI JOIN agent_jobs AS job
    ON job.project = choice.project AND job.path = choice.path AND job.planned_at >= choice.chosen_at
WHERE
  choice.project = $project
  AND choice.code NOT IN ('flagged', 'next', 'has-job', 'had-job', 'in-review')
  AND (choice.code <> 'held-out' OR choice.chosen_at < $from::DATE)
GROUP BY choice.code
ORDER BY pages DESC, choice.code
