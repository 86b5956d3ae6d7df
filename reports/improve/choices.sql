-- Grain: one row per page that the latest choice flagged and that got no job since, or left out; most read first.
SELECT choice.path, choice.is_flagged, choice.why, choice.weekly_human, choice.weekly_ai
FROM
  page_choices AS choice
  ANTI JOIN agent_jobs AS job
    ON job.project = choice.project AND job.path = choice.path AND choice.is_flagged AND job.planned_at >= choice.chosen_at
WHERE choice.project = $project
ORDER BY choice.weekly_human + choice.weekly_ai DESC, choice.path
