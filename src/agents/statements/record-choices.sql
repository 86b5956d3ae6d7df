MERGE INTO page_choices
USING
  (
    SELECT
      $project AS project,
      choice.*,
      -- A decision that repeats keeps its time, unless the page got a job in between.
      if(
        before.code = choice.code
        AND (before.facts ->> 'job') IS NOT DISTINCT FROM (choice.facts ->> 'job')
        AND job.path IS NULL,
        before.chosen_at,
        $now::TIMESTAMP
      ) AS chosen_at
    FROM
      (
        SELECT
          unnest(
            from_json(
              $choices,
              '[{"path": "VARCHAR", "is_flagged": "BOOLEAN", "code": "VARCHAR", "facts": "VARCHAR", "weekly_human": "DOUBLE", "weekly_ai": "DOUBLE"}]'
            ),
            max_depth := 2
          )
      ) AS choice
      LEFT JOIN page_choices AS before ON before.project = $project AND before.path = choice.path
      LEFT JOIN (
        SELECT page_of(path) AS path, max(planned_at) AS planned_at
        FROM agent_jobs
        WHERE project = $project
        GROUP BY ALL
      ) AS job
        ON job.path = choice.path AND job.planned_at >= before.chosen_at
  ) AS choice
  USING (project, path)
WHEN MATCHED
  AND (
    page_choices.is_flagged,
    page_choices.code,
    page_choices.facts,
    page_choices.weekly_human,
    page_choices.weekly_ai,
    page_choices.chosen_at
  ) IS DISTINCT FROM (
    choice.is_flagged,
    choice.code,
    choice.facts,
    choice.weekly_human,
    choice.weekly_ai,
    choice.chosen_at
  )
  THEN UPDATE BY NAME
WHEN NOT MATCHED THEN INSERT BY NAME
WHEN NOT MATCHED BY SOURCE AND page_choices.project = $project THEN DELETE
