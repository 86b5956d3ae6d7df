-- Grain: one row per pair of similar pages of which chance gave one a job. The full weeks after the
-- pull request was merged, while the other page is held out, are compared with those before the draw.
CREATE OR REPLACE VIEW experiments AS
WITH
  paired AS (SELECT * REPLACE (page_of(path) AS path) FROM experiment_pairs),

  drawn AS (
    SELECT
      project,
      pair,
      job_id AS job,
      any_value(drawn_at) AS drawn_at,
      any_value(seed) AS seed,
      any_value(path) FILTER (is_treated) AS path,
      any_value(path) FILTER (NOT is_treated) AS held_out
    FROM paired
    GROUP BY ALL
    -- Before 0.4, chance could pair a page with another address of itself.
    HAVING count(DISTINCT paired.path) = 2
  ),

  -- What was assigned counts, so a job without a merge is measured from its end, and a pull request
  -- that nobody settled in half a year from the draw.
  settled AS (
    SELECT
      drawn.project,
      pair,
      drawn.job,
      drawn_at,
      seed,
      drawn.path,
      held_out,
      CASE
        WHEN merged_on IS NOT NULL THEN 'merged'
        WHEN closed_on IS NOT NULL THEN 'closed'
        WHEN state IN ('failed', 'refused') AND pr_link IS NULL THEN 'failed'
        WHEN state IN ('completed', 'archived') AND pr_link IS NULL THEN 'no pull request'
        ELSE 'open'
      END AS outcome,
      CASE
        WHEN outcome IN ('merged', 'closed') THEN coalesce(merged_on, closed_on)
        WHEN state = 'refused' THEN drawn_at::DATE
        WHEN outcome <> 'open' THEN coalesce(ended_at, drawn_at)::DATE
        WHEN drawn_at + INTERVAL 182 DAY < last_day THEN drawn_at::DATE
      END AS changed_on,
      CASE
        WHEN outcome = 'merged' THEN changed_on + 56
        WHEN outcome = 'open' THEN changed_on + 182
        ELSE changed_on
      END AS held_out_until
    FROM
      drawn
      JOIN agent_jobs ON agent_jobs.id = drawn.job
      LEFT JOIN pull_requests ON pull_requests.job = drawn.job
      LEFT JOIN (SELECT project, max(day) AS last_day FROM site_days GROUP BY project) AS loaded ON loaded.project = drawn.project
  ),

  -- The page that was held out has a job of its own in the weeks that are compared: a person chose it, or it became free
  -- because the job of its twin ended without a merge.
  left_pair AS (
    SELECT DISTINCT settled.project, settled.pair, true AS is_left
    FROM settled
    JOIN agent_jobs AS other
      ON other.project = settled.project
      AND page_of(other.path) = settled.held_out
      AND other.state <> 'refused'
      AND other.planned_at >= drawn_at
      AND other.id <> settled.job
      AND other.planned_at < coalesce(greatest(held_out_until, changed_on + 56), DATE '9999-01-01')
  ),

  -- The latest eight full weeks before the draw (0), and up to seven after the change.
  pair_week AS (
    SELECT settled.project, pair, week, week > drawn_at AS is_after
    FROM settled JOIN site_weeks ON site_weeks.project = settled.project AND days_loaded = 7
    WHERE
      week BETWEEN date_trunc('week', drawn_at)::DATE - 84 AND date_trunc('week', drawn_at)::DATE - 7
      OR week BETWEEN date_trunc('week', changed_on)::DATE + 7 AND date_trunc('week', changed_on)::DATE + 49
    QUALIFY row_number() OVER (PARTITION BY settled.project, pair, is_after ORDER BY abs(week - drawn_at::DATE)) <= 8
  ),

  weeks AS (
    SELECT
      project,
      pair,
      count(*) FILTER (NOT is_after) AS weeks_before,
      count(*) FILTER (is_after) AS weeks_after,
      min(week) AS first_week,
      max(week) AS last_week
    FROM pair_week
    GROUP BY ALL
  ),

  across_break AS (
    SELECT project, pair, true AS is_across
    FROM settled JOIN weeks USING (project, pair)
    SEMI JOIN notes
      ON is_break
      AND notes.project = settled.project
      AND (settled.path GLOB notes.path OR held_out GLOB notes.path)
      AND notes.day > first_week
      AND notes.day < last_week + 7
  ),

  -- A filter on days lets DuckDB skip parts of the file; one on weeks would not.
  needed_day AS (
    SELECT DISTINCT project, week, week + weekday::INTEGER AS day
    FROM pair_week CROSS JOIN range(7) AS days (weekday)
  ),

  page_week AS (
    SELECT project, week, page AS path, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai
    FROM page_views JOIN needed_day USING (project, day)
    SEMI JOIN paired ON paired.project = page_views.project AND paired.path = page
    GROUP BY ALL
  ),

  -- The mean of a page's weeks on a log scale, without the highest and the lowest: peaks would
  -- widen the interval.
  twin AS (
    SELECT
      project,
      pair,
      is_treated,
      audience,
      sum(n) FILTER (NOT is_after) AS views_before,
      arg_max(all_views, week) AS views_at_last,
      (sum(size) FILTER (is_after) - max(size) FILTER (is_after) - min(size) FILTER (is_after)) / (count(*) FILTER (is_after) - 2)
      - (sum(size) FILTER (NOT is_after) - max(size) FILTER (NOT is_after) - min(size) FILTER (NOT is_after)) / (count(*) FILTER (NOT is_after) - 2) AS growth
    FROM
      (
        SELECT
          project,
          pair,
          is_treated,
          is_after,
          week,
          audience,
          coalesce(human + ai, 0) AS all_views,
          coalesce(if(audience = 'human', human, ai), 0) AS n,
          ln(n + 0.5) AS size
        FROM
          paired
          JOIN pair_week USING (project, pair)
          LEFT JOIN page_week USING (project, week, path)
          CROSS JOIN (VALUES ('human'), ('ai')) AS audiences (audience)
      )
    GROUP BY ALL
  ),

  -- How much more the page with the job grew than its twin, as a ratio. A page with very few views
  -- before the draw says nothing, and neither does one that was deleted or got a new address.
  compared AS (
    SELECT
      project,
      pair,
      exp(max(difference) FILTER (audience = 'human')) AS human_ratio,
      exp(max(difference) FILTER (audience = 'ai')) AS ai_ratio
    FROM
      (
        SELECT
          project,
          pair,
          audience,
          if(
            min(views_before) >= 28 AND min(views_at_last) > 0,
            max(growth) FILTER (is_treated) - max(growth) FILTER (NOT is_treated),
            NULL
          ) AS difference
        FROM twin
        GROUP BY ALL
      )
    GROUP BY ALL
  )

SELECT
  project,
  pair,
  drawn_at,
  seed,
  path,
  held_out,
  job,
  outcome,
  changed_on,
  held_out_until,
  coalesce(weeks_after, 0) AS weeks_after,
  CASE
    WHEN is_left THEN 'left'
    WHEN is_across THEN 'not compared'
    WHEN changed_on IS NULL THEN 'open'
    WHEN coalesce(weeks_before, 0) < 4 THEN 'not compared'
    WHEN coalesce(weeks_after, 0) < 4 THEN 'too early'
    ELSE 'measured'
  END AS state,
  if(state = 'measured', human_ratio, NULL) AS human_ratio,
  if(state = 'measured', ai_ratio, NULL) AS ai_ratio
FROM
  settled
  LEFT JOIN weeks USING (project, pair)
  LEFT JOIN compared USING (project, pair)
  LEFT JOIN left_pair USING (project, pair)
  LEFT JOIN across_break USING (project, pair);

COMMENT ON VIEW experiments IS 'Pairs of similar pages, of which chance gave one a job, while the other was held out. One row per pair. Because only chance decided between them, a difference that many pairs share is the effect of the jobs.';
COMMENT ON COLUMN experiments.project IS 'Project id on the platform';
COMMENT ON COLUMN experiments.pair IS 'Number of the pair';
COMMENT ON COLUMN experiments.drawn_at IS 'When it was drawn (UTC)';
COMMENT ON COLUMN experiments.seed IS 'Random text of the draw: with the two paths, it determines the result';
COMMENT ON COLUMN experiments.path IS 'Page that got the job';
COMMENT ON COLUMN experiments.held_out IS 'Page that was held out';
COMMENT ON COLUMN experiments.job IS 'Job number in Readership';
COMMENT ON COLUMN experiments.outcome IS 'What became of the job: open, merged, closed (its pull request was not merged), failed or no pull request';
COMMENT ON COLUMN experiments.changed_on IS 'Day (UTC) from which the pair is measured: the day of the merge, or the end of the job without one, or the day of the draw if the job is still open after half a year. NULL while it is open';
COMMENT ON COLUMN experiments.held_out_until IS 'Day from which the page that was held out qualifies again: eight weeks after the merge, or the end of the job without one; NULL while the job is open';
COMMENT ON COLUMN experiments.weeks_after IS 'Number of full weeks after the week of the change that are loaded, at most 7';
COMMENT ON COLUMN experiments.state IS 'measured; open; too early (fewer than 4 full weeks after the change); left (the page that was held out has a job of its own in the weeks that are compared); not compared (fewer than 4 full weeks before the draw, or a break in notes)';
COMMENT ON COLUMN experiments.human_ratio IS 'Human views in an average week after the change divided by those of up to 8 full weeks before the draw, relative to the page that was held out: 1.2 means 20% more growth. The averages are geometric and leave out the highest and the lowest week. NULL if it is not measured, or if a page had fewer than 28 views before, or none in the latest week';
COMMENT ON COLUMN experiments.ai_ratio IS 'The same for AI views';
