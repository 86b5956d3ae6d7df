-- Grain: one row per page that the latest selection flagged, and one for each of the first pages up next, most
-- viewed first. Leaves out pages that got a job since: jobs.sql lists those.
SELECT
  choice.path,
  choice.code,
  choice.facts,
  choice.chosen_at,
  choice.chosen_at >= least((SELECT max(day) FROM site_days WHERE project = $project) + 1, $to::DATE + 7) - 6 AS newly_flagged,
  {human: choice.weekly_human, ai: choice.weekly_ai, trend: (choice.facts ->> 'trend')::DOUBLE} AS weekly
FROM
  choices AS choice
  ANTI JOIN jobs AS job
    ON job.project = choice.project AND job.path = choice.path AND job.planned_at >= choice.chosen_at
WHERE
  choice.project = $project AND choice.code IN ('flagged', 'next')
QUALIFY
  choice.code <> 'next' OR row_number() OVER (PARTITION BY choice.code ORDER BY (choice.facts ->> 'rank')::INTEGER) <= 5
ORDER BY choice.weekly_human + choice.weekly_ai DESC, choice.path
