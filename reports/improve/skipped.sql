-- Grain: one row per reason why the latest selection left pages out, with their number. Leaves out pages
-- that are newly held out, and those that have or had a job: choices.sql and jobs.sql list those.
SELECT choice.code, min(choice.facts) AS facts, count(*) AS pages
FROM
  page_choices AS choice
  ANTI JOIN agent_jobs AS job
    ON job.project = choice.project AND job.path = choice.path AND job.planned_at >= choice.chosen_at
WHERE
  choice.project = $project
  AND NOT choice.is_flagged
  AND choice.code NOT IN ('has-job', 'had-job', 'in-review')
  AND (choice.code <> 'held-out' OR choice.chosen_at < $from::DATE)
-- Other reasons are told without the facts of a page.
GROUP BY choice.code, if(choice.code = 'not-considered', choice.facts, NULL)
ORDER BY pages DESC, choice.code, facts
