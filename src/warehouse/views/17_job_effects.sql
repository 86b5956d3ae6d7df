-- Grain: one row per agent job that has been merged, or has ended with a pull request, and audience.
-- The four full weeks before the week of the merge are compared with the four after it, and with
-- pages of similar traffic and a similar course: a page that just fell often recovers by itself. On a
-- log scale, how far those pages deviate from their median shows how far a page deviates by chance.
CREATE OR REPLACE VIEW job_effects AS
WITH
  changed AS (
    SELECT id AS job, project, page_of(path) AS path, merged_on, date_trunc('week', merged_on)::DATE AS change_week
    FROM agent_jobs
    WHERE
      (pr_link IS NOT NULL OR merged_on IS NOT NULL)
      AND (
        merged_on IS NOT NULL
        OR (ended_at IS NOT NULL AND id NOT IN (SELECT job FROM pull_requests WHERE closed_on IS NOT NULL))
      )
    UNION ALL
    SELECT
      -row_number() OVER (ORDER BY project, path, changed_on)::INTEGER AS job,
      project,
      path,
      changed_on AS merged_on,
      date_trunc('week', changed_on)::DATE AS change_week
    FROM page_changes
    WHERE link IS NULL
  ),

  -- Fully loaded weeks, from sixteen before the change (-16) to four after it (4). The first four show
  -- only whether a page fell.
  job_week AS (
    SELECT job, changed.project, week, datediff('week', change_week, week) AS number
    FROM changed JOIN site_weeks ON site_weeks.project = changed.project AND days_loaded = 7
    WHERE week <> change_week AND week BETWEEN change_week - 112 AND change_week + 28
  ),

  weeks AS (
    SELECT
      job,
      count(*) FILTER (number BETWEEN -4 AND -1) AS weeks_before,
      count(*) FILTER (number BETWEEN -12 AND -5) AS weeks_earlier,
      count(*) FILTER (number > 0) AS weeks_after
    FROM job_week
    GROUP BY job
  ),

  -- A filter on days lets DuckDB skip parts of the file; one on weeks would not.
  needed_day AS (
    SELECT DISTINCT project, week, week + weekday::INTEGER AS day
    FROM job_week CROSS JOIN range(7) AS days (weekday)
  ),

  page_week AS (
    SELECT project, week, page AS path, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai
    FROM page_views JOIN needed_day USING (project, day)
    GROUP BY ALL
  ),

  cell AS (
    SELECT job, audience, path, number, views.n, ln(n + 0.5) AS size
    FROM
      job_week
      JOIN (FROM (UNPIVOT page_week ON human, ai INTO NAME audience VALUE n) WHERE n > 0) AS views USING (project, week)
  ),

  page AS (
    SELECT
      job,
      audience,
      path,
      coalesce(sum(n) FILTER (number BETWEEN -4 AND -1), 0)::BIGINT AS views_before,
      coalesce(sum(n) FILTER (number BETWEEN -12 AND -5), 0)::BIGINT AS views_earlier,
      coalesce(sum(n) FILTER (number > 0), 0)::BIGINT AS views_after,
      count(*) FILTER (number >= -4) AS weeks_viewed,
      median(size) FILTER (number BETWEEN -12 AND -1) AS level,
      ln(sum(n) FILTER (number BETWEEN -8 AND -1) / sum(n) FILTER (number < -8)) AS change
    FROM cell
    GROUP BY ALL
  ),

  -- Pages that an agent or a person changed. A reopened job has no end date, so its page counts as
  -- touched from the day it was submitted.
  touched AS (
    SELECT changed.job, other.path
    FROM changed
    JOIN (
      SELECT project, page_of(path) AS path, coalesce(merged_on, ended_at::DATE, submitted_at::DATE) AS changed_on
      FROM agent_jobs
      WHERE pr_link IS NOT NULL OR merged_on IS NOT NULL
      UNION ALL
      SELECT project, path, changed_on
      FROM page_changes
    ) AS other
      ON other.project = changed.project AND other.changed_on BETWEEN change_week - 28 AND change_week + 34
  ),

  across_break AS (
    SELECT DISTINCT job, notes.path AS pattern
    FROM changed
    JOIN notes
      ON is_break
      AND notes.project = changed.project
      AND notes.day BETWEEN change_week - 83 AND change_week + 34
  ),

  own AS (SELECT page.* FROM page JOIN changed USING (job, path)),

  -- Pages with similar traffic. One that vanished or is new does not show how far a page deviates by
  -- chance.
  alike AS (
    SELECT page.*
    FROM page JOIN own USING (job, audience)
    ANTI JOIN touched ON touched.job = page.job AND touched.path = page.path
    ANTI JOIN across_break ON across_break.job = page.job AND page.path GLOB across_break.pattern
    WHERE
      page.path <> own.path
      AND page.weeks_viewed = 8
      AND page.views_before >= 28
      AND page.views_earlier >= 28
      AND own.views_before > 0
    QUALIFY
      row_number() OVER (PARTITION BY job, audience ORDER BY abs(ln(page.views_before / own.views_before)), page.path) <= 200
  ),

  trend AS (
    SELECT job, audience, number, median(size - level) AS trend
    FROM cell JOIN alike USING (job, audience, path)
    WHERE number BETWEEN -12 AND -1
    GROUP BY ALL
  ),

  -- The variance of a page's weeks around the trend, beyond chance.
  variance AS (
    SELECT job, audience, path, count(*) - 1 AS freedom, coalesce(var_samp(size - trend), 0) - exp(-any_value(level)) AS psi
    FROM
      cell
      JOIN trend USING (job, audience, number)
      JOIN (FROM alike UNION ALL FROM own) USING (job, audience, path)
    GROUP BY ALL
  ),

  middle AS (
    SELECT
      job,
      audience,
      median(ln(views_before / views_earlier)) AS course,
      median(change) AS change,
      greatest(0, median(psi)) / 0.9 AS psi
    FROM alike JOIN variance USING (job, audience, path)
    GROUP BY ALL
  ),

  noisy AS (
    SELECT
      page.*,
      middle.course AS common_course,
      page.change - middle.change <= -ln(1.25) AS is_fallen,
      middle.psi AS common_noise,
      greatest(middle.psi, (8 * middle.psi + freedom * variance.psi) / (8 + freedom)) AS noise
    FROM
      (FROM alike UNION ALL FROM own) AS page
      JOIN variance USING (job, audience, path)
      JOIN middle USING (job, audience)
    WHERE views_before > 0 AND views_earlier > 0
  ),

  -- The course of a page is how far its last four weeks are from the eight before, in units of what
  -- its noise explains: noise is gone after the change, a step or drift is not, and this ratio tells
  -- how much of either to expect. `growth` is in the same units.
  coursed AS (
    SELECT
      *,
      sqrt(2 / views_before + noise) AS sigma,
      ln(views_before + views_earlier) AS height,
      (ln(views_before / views_earlier) - common_course) / sqrt(1 / views_before + 1 / views_earlier + 0.825 * noise) AS course,
      ln((views_after + 0.5) / (views_before + 0.5)) / sigma AS growth
    FROM noisy
  ),

  comparison AS (
    SELECT page.*
    FROM coursed AS page
    JOIN coursed AS own USING (job, audience)
    JOIN changed ON changed.job = own.job AND changed.path = own.path
    WHERE page.path <> own.path AND abs(page.course - own.course) <= if(abs(own.course) < 1.5, 1.5, 0.5)
    QUALIFY
      row_number() OVER (
        PARTITION BY job, audience
        ORDER BY ((page.height - own.height) / 1.5) ^ 2 + ((page.course - own.course) / 0.5) ^ 2, page.path
      ) <= 39
  ),

  common AS (
    SELECT job, audience, count(*)::DOUBLE AS pages, median(growth) AS common
    FROM comparison
    GROUP BY ALL
  ),

  -- Only one in twenty unchanged pages deviates by more than the margin, in units of its sigma: the
  -- 38th of 39. Fewer than 19 pages need the t distribution, here from 7 degrees of freedom.
  margin AS (
    SELECT
      job,
      audience,
      pages,
      if(
        pages >= 19,
        list(abs(growth - common) ORDER BY abs(growth - common))[ceil(0.95 * (pages + 1))::INTEGER],
        [2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110][pages::INTEGER - 7]
        * stddev_samp(growth)
        * sqrt(1 + 1 / pages)
      ) AS margin
    FROM comparison JOIN common USING (job, audience)
    GROUP BY job, audience, pages
  ),

  measured AS (
    SELECT
      changed.*,
      audience,
      coalesce(weeks_before, 0) AS weeks_before,
      coalesce(weeks_after, 0) AS weeks_after,
      coalesce(own.views_before, 0) AS views_before,
      coalesce(own.views_after, 0) AS views_after,
      coalesce(pages, 0)::BIGINT AS pages,
      (coursed.growth - common) * sigma AS deviation,
      -- A page is often chosen because it fell, and then varies more than its weeks show: its interval
      -- is a fifth wider, or unknown on a site where most pages vary by more than 15% a week.
      margin * sigma * if(is_fallen, 1.2, 1) AS reach,
      CASE
        WHEN merged_on IS NULL THEN 'merge date unknown'
        WHEN break IS NOT NULL THEN strftime(break, 'counting changed on %b %-d, %Y')
        WHEN coalesce(weeks_before, 0) < 4 THEN format('only {} of the 4 weeks before the change are fully loaded', coalesce(weeks_before, 0))
        WHEN coalesce(weeks_earlier, 0) < 4 THEN format('only {} of the 12 weeks before the change are fully loaded; at least 8 are needed', weeks_before + coalesce(weeks_earlier, 0))
        WHEN coalesce(weeks_after, 0) < 4 THEN NULL
        WHEN coalesce(own.views_before, 0) < 28 THEN 'too few views before the change'
        WHEN own.weeks_viewed < 8 THEN 'not viewed in every one of the eight weeks'
        WHEN coalesce(pages, 0) < 19 AND abs(coursed.course) >= 1.5 THEN
          format('it {} before the change, and only {} similar pages did; at least 19 are needed', if(coursed.course < 0, 'fell', 'rose'), coalesce(pages, 0)::BIGINT)
        WHEN coalesce(pages, 0) < 8 THEN format('only {} comparable pages; at least 8 are needed', coalesce(pages, 0)::BIGINT)
        WHEN is_fallen AND common_noise > 0.15 ^ 2 THEN 'it fell before the change, and pages of this site vary too much'
        WHEN reach > ln(2) THEN 'its views vary too much'
      END AS why
    FROM
      changed
      CROSS JOIN (VALUES ('human'), ('ai')) AS audiences (audience)
      LEFT JOIN weeks USING (job)
      LEFT JOIN own USING (job, audience, path)
      LEFT JOIN (SELECT job, audience, path, course, growth, sigma, is_fallen, common_noise FROM coursed) AS coursed USING (job, audience, path)
      LEFT JOIN common USING (job, audience)
      LEFT JOIN (SELECT job, audience, margin FROM margin) AS margin USING (job, audience)
      LEFT JOIN (
        SELECT changed.job, max(notes.day) AS break
        FROM changed
        JOIN notes
          ON is_break
          AND notes.project = changed.project
          AND changed.path GLOB notes.path
          AND notes.day BETWEEN change_week - 83 AND change_week + 34
        GROUP BY changed.job
      ) AS broken USING (job)
  )

SELECT
  job,
  project,
  path,
  audience,
  merged_on,
  change_week - 28 AS before_from,
  change_week + 7 AS after_from,
  weeks_before,
  weeks_after,
  views_before,
  views_after,
  pages AS comparison_pages,
  CASE
    WHEN why IS NOT NULL THEN 'cannot tell'
    WHEN weeks_after < 4 THEN 'too early'
    WHEN deviation > reach THEN 'more views'
    WHEN deviation < -reach THEN 'fewer views'
    ELSE 'no clear change'
  END AS verdict,
  why,
  exp(if(weeks_after = 4 AND coalesce(why, 'its views vary too much') = 'its views vary too much', deviation, NULL)) AS ratio,
  exp(if(verdict IN ('cannot tell', 'too early'), NULL, deviation - reach)) AS low,
  exp(if(verdict IN ('cannot tell', 'too early'), NULL, deviation + reach)) AS high
FROM measured;

COMMENT ON VIEW job_effects IS 'Views of a page before and after a pull request: the four full weeks after the week of the merge are compared with the four before, and with up to 39 pages of similar traffic and a similar course over the twelve weeks before, which neither an agent nor a person changed. One row per audience (human or ai) of each job with a pull request that has been merged, or whose job has ended without the pull request being closed. It shows correlation, not that the change was the cause: see experiment_effect for that.';
COMMENT ON COLUMN job_effects.job IS 'Job number in Readership; negative for a change that a person recorded with readership changed';
COMMENT ON COLUMN job_effects.project IS 'Project id on the platform';
COMMENT ON COLUMN job_effects.path IS 'Page that was changed';
COMMENT ON COLUMN job_effects.audience IS 'human or ai, measured separately because a change may affect only one of them';
COMMENT ON COLUMN job_effects.merged_on IS 'Day (UTC) of the merge or change, recorded with readership jobs merged or found at the code host. Its week counts as neither before nor after. NULL if unknown; the verdict is then cannot tell';
COMMENT ON COLUMN job_effects.before_from IS 'Monday of the first of the four weeks before the change';
COMMENT ON COLUMN job_effects.after_from IS 'Monday of the first of the four weeks after the change';
COMMENT ON COLUMN job_effects.weeks_before IS 'Number of fully loaded weeks before the change, 0 to 4';
COMMENT ON COLUMN job_effects.weeks_after IS 'Number of fully loaded weeks after the change, 0 to 4; below 4, the verdict is too early';
COMMENT ON COLUMN job_effects.views_before IS 'Views by this audience in the weeks before the change';
COMMENT ON COLUMN job_effects.views_after IS 'Views by this audience in the weeks after the change';
COMMENT ON COLUMN job_effects.comparison_pages IS 'Number of comparison pages: those whose views and course before the change were closest, among pages viewed in all eight weeks. A page that fell is compared with pages that fell. At least 8 are needed, 19 for a page that fell or rose before, and at most 39 are used';
COMMENT ON COLUMN job_effects.verdict IS 'more views, fewer views, no clear change, too early or cannot tell. By chance, about one in twenty unchanged pages gets more views or fewer views';
COMMENT ON COLUMN job_effects.why IS 'Why the verdict is cannot tell; NULL otherwise';
COMMENT ON COLUMN job_effects.ratio IS 'Views after divided by views before, relative to the median of the comparison pages: 1.2 means 20% more growth than they had. NULL if not measured';
COMMENT ON COLUMN job_effects.low IS 'Lower bound of the 95% confidence interval of ratio. It is wider for a page whose views vary more, or fell before the change. NULL if the verdict is too early or cannot tell, such as when the interval would reach from half to twice the ratio';
COMMENT ON COLUMN job_effects.high IS 'Upper bound of the 95% confidence interval of ratio';
