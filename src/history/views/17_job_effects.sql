-- Grain: one row per agent job that was merged. The four weeks from the day after the merge, as far as they are over, are
-- compared with the four weeks before it, per loaded day without an
-- outage.
CREATE OR REPLACE VIEW job_effects AS
WITH
  merged AS (
    SELECT id AS job, project, path AS page, merged_on, greatest(0, least(4, (last_day - merged_on) // 7))::INTEGER AS weeks_after
    FROM jobs JOIN (SELECT project, max(day) AS last_day FROM site_days GROUP BY project) USING (project)
    WHERE merged_on IS NOT NULL
  ),

  loaded AS (
    SELECT job, merged.project, page, merged_on, weeks_after, day, day > merged_on AS is_after, human AS site_human, ai AS site_ai
    FROM merged JOIN site_days ON site_days.project = merged.project AND day BETWEEN merged_on - 28 AND merged_on + 7 * weeks_after
    WHERE day <> merged_on AND NOT is_outage
  ),

  -- A page has several addresses.
  views AS (
    SELECT project, page, day, sum(human) AS human, sum(ai) AS ai
    FROM page_views SEMI JOIN loaded USING (project, page, day)
    GROUP BY ALL
  ),

  side AS (
    SELECT
      job,
      is_after,
      count(*) AS days,
      sum(coalesce(human, 0))::BIGINT AS human,
      sum(coalesce(ai, 0))::BIGINT AS ai,
      sum(site_human) / days AS site_human,
      sum(site_ai) / days AS site_ai
    FROM loaded LEFT JOIN views USING (project, page, day)
    GROUP BY ALL
  ),

  -- Nothing is compared across a day on which counting changed.
  broken AS (
    SELECT job, bool_or(merged.page GLOB notes.path) AS is_page, true AS is_site
    FROM merged JOIN notes ON is_break AND notes.project = merged.project AND day > merged_on - 28 AND day <= merged_on + 7 * weeks_after
    GROUP BY job
  )

SELECT
  job,
  project,
  merged.page AS path,
  merged_on,
  weeks_after,
  coalesce(before.days, 0) AS days_before,
  coalesce(after.days, 0) AS days_after,
  before.human AS human_before,
  after.human AS human_after,
  if(is_page, NULL, (human_after / days_after) / nullif(human_before / days_before, 0) - 1) AS human_change,
  if(is_site, NULL, after.site_human / nullif(before.site_human, 0) - 1) AS site_human_change,
  before.ai AS ai_before,
  after.ai AS ai_after,
  if(is_page, NULL, (ai_after / days_after) / nullif(ai_before / days_before, 0) - 1) AS ai_change,
  if(is_site, NULL, after.site_ai / nullif(before.site_ai, 0) - 1) AS site_ai_change
FROM
  merged
  LEFT JOIN (FROM side WHERE NOT is_after) AS before USING (job)
  LEFT JOIN (FROM side WHERE is_after) AS after USING (job)
  LEFT JOIN broken USING (job);

COMMENT ON VIEW job_effects IS 'Views of a page before and after a change was merged. They are those of the four weeks before an agent''s change was merged and the four after it, as far as they are over, with the change of the whole site beside them. One row per merged job. It does not say whether the change was the cause.';
COMMENT ON COLUMN job_effects.job IS 'Job number in Readership';
COMMENT ON COLUMN job_effects.project IS 'Project id on the platform';
COMMENT ON COLUMN job_effects.path IS 'Page';
COMMENT ON COLUMN job_effects.merged_on IS 'Day (UTC) of the merge, which counts on neither side';
COMMENT ON COLUMN job_effects.weeks_after IS 'Number of weeks after the merge that are over, 0 to 4';
COMMENT ON COLUMN job_effects.days_before IS 'Number of loaded days of the four weeks before, without outages as in site_days';
COMMENT ON COLUMN job_effects.days_after IS 'Number of such days of the weeks after';
COMMENT ON COLUMN job_effects.human_before IS 'Human views of the page on those days before; NULL without a loaded day';
COMMENT ON COLUMN job_effects.human_after IS 'Human views of the page on those days after; NULL without a loaded day';
COMMENT ON COLUMN job_effects.human_change IS 'Relative change of human views per loaded day: 0.1 means 10% more. NULL if there is nothing to compare with, or if the notes have a break in between';
COMMENT ON COLUMN job_effects.site_human_change IS 'The same for the whole site';
COMMENT ON COLUMN job_effects.ai_before IS 'AI views of the page on those days before; NULL without a loaded day';
COMMENT ON COLUMN job_effects.ai_after IS 'AI views of the page on those days after; NULL without a loaded day';
COMMENT ON COLUMN job_effects.ai_change IS 'As human_change, for AI views';
COMMENT ON COLUMN job_effects.site_ai_change IS 'The same for the whole site';
