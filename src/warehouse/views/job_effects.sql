-- Grain: one row per agent job with a pull request that has ended or been merged: views before and
-- after, for its page and for comparison pages.
CREATE OR REPLACE VIEW job_effects AS
WITH
  changed AS (
    SELECT
      id AS job,
      project,
      path,
      coalesce(merged_on, ended_at::DATE) AS counted_from,
      if(merged_on IS NULL, 'completed', 'merged') AS counted_from_is,
      date_trunc('week', coalesce(merged_on, ended_at::DATE))::DATE AS change_week
    FROM agent_jobs
    WHERE pr_link IS NOT NULL AND (merged_on IS NOT NULL OR ended_at IS NOT NULL)
  ),
  whole_weeks AS (
    SELECT changed.job, count(*) FILTER (week < change_week) AS weeks_before, count(*) FILTER (week > change_week) AS weeks_after
    FROM changed
    JOIN site_weeks
      ON site_weeks.project = changed.project
      AND days_loaded = 7
      AND week <> change_week
      AND week BETWEEN change_week - 28 AND change_week + 28
    GROUP BY changed.job
  ),
  page_reading AS (
    SELECT
      changed.job,
      views.path,
      coalesce(sum(human + ai) FILTER (day < change_week), 0)::BIGINT AS views_before,
      coalesce(sum(human + ai) FILTER (day >= change_week + 7), 0)::BIGINT AS views_after,
      coalesce(sum(human) FILTER (day < change_week), 0)::BIGINT AS human_before,
      coalesce(sum(human) FILTER (day >= change_week + 7), 0)::BIGINT AS human_after
    FROM changed
    JOIN page_views AS views
      ON views.project = changed.project
      AND day BETWEEN change_week - 28 AND change_week + 34
      AND day NOT BETWEEN change_week AND change_week + 6
    GROUP BY changed.job, views.path
  ),
  -- A reopened job has no end date, so its page counts as touched from the day it was submitted.
  touched AS (
    SELECT changed.job, other.path
    FROM changed
    JOIN agent_jobs AS other
      ON other.project = changed.project
      AND other.pr_link IS NOT NULL
      AND coalesce(merged_on, ended_at::DATE, submitted_at::DATE) BETWEEN change_week - 28 AND change_week + 34
  ),
  -- Pages with similar traffic were as likely to be selected, and as likely to fall back from a
  -- peak.
  comparison AS (
    SELECT page.job, {path: page.path, before: page.views_before, after: page.views_after} AS page
    FROM page_reading AS page
    JOIN changed USING (job)
    JOIN page_reading AS own ON own.job = page.job AND own.path = changed.path AND own.views_before > 0
    ANTI JOIN touched ON touched.job = page.job AND touched.path = page.path
    WHERE page.path <> changed.path AND page.views_before >= 28
    QUALIFY row_number() OVER (PARTITION BY page.job ORDER BY abs(ln(page.views_before / own.views_before)), page.path) <= 39
  ),
  compared AS (SELECT job, list(page ORDER BY page.path) AS pages FROM comparison GROUP BY job)
SELECT
  job,
  project,
  path,
  counted_from,
  counted_from_is,
  change_week - 28 AS before_from,
  change_week + 7 AS after_from,
  coalesce(weeks_before, 0) AS weeks_before,
  coalesce(weeks_after, 0) AS weeks_after,
  coalesce(views_before, 0) AS views_before,
  coalesce(views_after, 0) AS views_after,
  coalesce(human_before, 0) AS human_before,
  coalesce(human_after, 0) AS human_after,
  coalesce(compared.pages, []) AS comparison
FROM changed
LEFT JOIN whole_weeks USING (job)
LEFT JOIN page_reading USING (job, path)
LEFT JOIN compared USING (job);

COMMENT ON VIEW job_effects IS 'Views used to measure the effect of a pull request: the page in the four full weeks before and after the week of the change, and up to 39 comparison pages with similar traffic that no agent changed. One row per job with a pull request that has ended or been merged.';
COMMENT ON COLUMN job_effects.job IS 'Job number in Readership';
COMMENT ON COLUMN job_effects.project IS 'Project id on the platform';
COMMENT ON COLUMN job_effects.path IS 'Page that was changed';
COMMENT ON COLUMN job_effects.counted_from IS 'Day (UTC) the change counts from; its week is neither before nor after';
COMMENT ON COLUMN job_effects.counted_from_is IS 'merged (the day recorded with readership jobs merged) or completed (the day the job ended; the pull request may have been merged later)';
COMMENT ON COLUMN job_effects.before_from IS 'Monday of the first of the four weeks before the change';
COMMENT ON COLUMN job_effects.after_from IS 'Monday of the first of the four weeks after the change';
COMMENT ON COLUMN job_effects.weeks_before IS 'Number of fully loaded weeks before, 0 to 4';
COMMENT ON COLUMN job_effects.weeks_after IS 'Number of fully loaded weeks after, 0 to 4; with fewer than 4 it is too early to tell';
COMMENT ON COLUMN job_effects.views_before IS 'Human and AI views in the weeks before';
COMMENT ON COLUMN job_effects.views_after IS 'Human and AI views in the weeks after';
COMMENT ON COLUMN job_effects.human_before IS 'Human views in the weeks before';
COMMENT ON COLUMN job_effects.human_after IS 'Human views in the weeks after';
COMMENT ON COLUMN job_effects.comparison IS 'Pages no agent changed that had the most similar views before, with their views before and after';
